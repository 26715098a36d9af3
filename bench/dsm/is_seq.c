// SPDX-License-Identifier: Apache-2.0
//
// IS, sequential.
#include "is.h"

struct is_outcome is_run(const struct is *is, const struct is_part *part) {
    struct is_outcome outcome = {0};
    const double start = dsm_start();
    for (long i = 1; i <= is->iterations; ++i) {
        is_count(is, part, i);
        is_rank(is, part, part->counts);
        outcome.known_met += is_known_ranks_met(is, part, i);
    }
    outcome.seconds = dsm_stop(start);
    return outcome;
}
