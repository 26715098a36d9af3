// SPDX-License-Identifier: Apache-2.0
//
// EP on shared memory: each process adds its sums to the shared ones, under a lock.
#include "ep.h"
#include "form_tmk.h"

enum { kSumsLock = 1, kAdded };

double ep_run(long batches, struct ep_sums *sums) {
    struct ep_sums *const shared = form_share(sizeof(*shared));
    const double start = dsm_start();
    ep_count(own_share(batches), sums);
    Tmk_lock_acquire(kSumsLock);
    ep_add(shared, sums);
    Tmk_lock_release(kSumsLock);
    Tmk_barrier(kAdded);
    if (form_process == 0) *sums = *shared;
    return dsm_stop(start);
}
