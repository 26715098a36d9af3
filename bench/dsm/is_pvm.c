// SPDX-License-Identifier: Apache-2.0
//
// IS by PVM as Lu et al. describe it (JPDC 43, 1997): the counts pass from process 0 to the last
// one, each adds its own, and the last one sends the sum to all.
#include "form_pvm.h"
#include "is.h"

enum { kPartTag, kSumTag };

static void send_counts(unsigned process, int tag, int *counts, int values) {
    pvm_initsend(PvmDataInPlace);
    form_pvm(pvm_pkint(counts, values, 1));
    form_send(process, tag, (size_t)values * sizeof(*counts));
}

static void receive_counts(unsigned process, int tag, int *counts, int values) {
    form_pvm(pvm_recv(form_task(process), tag));
    form_pvm(pvm_upkint(counts, values, 1));
}

static void sum_counts(int *counts, int *others, int values) {
    const unsigned last = form_processes - 1;
    if (last == 0) return;
    if (form_process > 0) {
        receive_counts(form_process - 1, kPartTag, others, values);
        for (int value = 0; value < values; ++value) counts[value] += others[value];
    }
    if (form_process < last) {
        send_counts(form_process + 1, kPartTag, counts, values);
        receive_counts(last, kSumTag, counts, values);
        return;
    }
    // One by one: pvm_mcast goes through the daemons.
    for (unsigned process = 0; process < last; ++process) {
        send_counts(process, kSumTag, counts, values);
    }
}

struct is_outcome is_run(const struct is *is, const struct is_part *part) {
    const int values = (int)is_values(is);
    int *const others = dsm_allocate((size_t)values, sizeof(int));
    struct is_outcome outcome = {0};
    const double start = dsm_start();
    for (long i = 1; i <= is->iterations; ++i) {
        is_count(is, part, i);
        sum_counts(part->counts, others, values);
        is_rank(is, part, part->counts);
        outcome.known_met += is_known_ranks_met(is, part, i);
    }
    outcome.seconds = dsm_stop(start);
    free(others);
    return outcome;
}
