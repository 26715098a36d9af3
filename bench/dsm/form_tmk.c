// SPDX-License-Identifier: Apache-2.0
//
// The form for distributed shared memory, by TreadMarks' interface.  Barriers and locks from
// FORM_IDS on are for this file, the ones below for the programs.
#include "form.h"

#include <string.h>

#include "form_tmk.h"
#include "hanare/dsm.h"

const char form_name[] = "tmk";
const char *const form_count_names[] = {
    "messages", "bytes", "barrier_messages", "barrier_bytes", "faults",      "fetched_blocks",
    "twins",    "diffs", "diff_bytes",       "locks",         "remote_locks"};
const unsigned form_count_total = sizeof(form_count_names) / sizeof(form_count_names[0]);
unsigned form_process;
unsigned form_processes;

enum { kBarrier = FORM_IDS, kSumBarrier, kAfterSumBarrier, kSumLock = FORM_IDS };

// Two sums that take turns: one is added up while the other is read and then cleared.
static struct form_sums {
    uint64_t sum[2];
} *sums;
static unsigned turn;

void *form_share(size_t bytes) {
    static void *address;  // Tmk_distribute wants a variable that is in the same place everywhere
    if (form_process == 0) {
        address = Tmk_malloc(bytes);
        if (address == NULL) form_abort("no shared memory");
        Tmk_distribute(&address, sizeof(address));
    }
    Tmk_barrier(kBarrier);
    void *const shared = address;
    Tmk_barrier(kBarrier);
    return shared;
}

void form_begin(int argc, char **argv) {
    Tmk_startup(argc, argv);
    form_process = Tmk_proc_id;
    form_processes = Tmk_nprocs;
    sums = form_share(sizeof(*sums));
}

void form_count(uint64_t counts[FORM_COUNTS_MAX]) {
    hanare_dsm *dsm = NULL;
    hanare_dsm_counters all = {.struct_size = sizeof(all)};
    if (hanare_dsm_running(&dsm) != HANARE_STATUS_OK ||
        hanare_dsm_count(dsm, &all) != HANARE_STATUS_OK) {
        form_abort("no counters");
    }
    const uint64_t values[] = {all.messages,
                               all.message_bytes,
                               all.barrier_messages,
                               all.barrier_bytes,
                               all.read_faults + all.write_faults,
                               all.fetched_blocks,
                               all.twins,
                               all.diffs,
                               all.diff_bytes,
                               all.locks,
                               all.remote_locks};
    memcpy(counts, values, sizeof(values));
}

void form_barrier(void) { Tmk_barrier(kBarrier); }

uint64_t form_sum(uint64_t own) {
    Tmk_lock_acquire(kSumLock);
    sums->sum[turn] += own;
    Tmk_lock_release(kSumLock);
    Tmk_barrier(kSumBarrier);
    const uint64_t all = sums->sum[turn];
    Tmk_barrier(kAfterSumBarrier);
    if (form_process == 0) sums->sum[turn] = 0;
    turn = 1 - turn;
    return all;
}

void form_end(int status) {
    Tmk_exit(form_process == 0 ? status : 0);
    form_abort("Tmk_exit has returned");
}

void form_abort(const char *what) {
    Tmk_errexit("%s\n", what);
    for (;;) continue;  // not reached; Tmk_errexit is not declared as not returning
}
