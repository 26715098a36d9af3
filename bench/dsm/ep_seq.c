// SPDX-License-Identifier: Apache-2.0
//
// EP, sequential.
#include "ep.h"

double ep_run(long batches, struct ep_sums *sums) {
    const struct share all = {0, batches};
    const double start = dsm_start();
    ep_count(all, sums);
    return dsm_stop(start);
}
