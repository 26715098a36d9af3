// SPDX-License-Identifier: Apache-2.0
//
// TSP on shared memory: queue and best tour are shared, under one lock.  Who takes a tour makes
// those before it longer, lock held, and takes the length of the best one with it: reading that
// outside the lock would be a data race.
#include "form_tmk.h"
#include "tsp.h"

enum { kQueueLock = 1, kBegun, kSolved };

double tsp_run(const struct tsp *tsp, struct tour *best) {
    struct tour *const shared_best = form_share(sizeof(*shared_best));
    struct tour_queue *const queue = form_share(tsp_queue_bytes(tsp));
    const double start = dsm_start();
    if (form_process == 0) tsp_begin(tsp, queue, shared_best);
    Tmk_barrier(kBegun);
    for (;;) {
        struct tour tour;
        Tmk_lock_acquire(kQueueLock);
        *best = *shared_best;
        const bool taken = tsp_take(tsp, queue, best->length, &tour);
        Tmk_lock_release(kQueueLock);
        if (!taken) break;
        if (!tsp_solve(tsp, &tour, best)) continue;
        Tmk_lock_acquire(kQueueLock);
        if (best->length < shared_best->length) *shared_best = *best;
        Tmk_lock_release(kQueueLock);
    }
    Tmk_barrier(kSolved);
    *best = *shared_best;
    return dsm_stop(start);
}
