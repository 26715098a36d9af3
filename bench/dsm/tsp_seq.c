// SPDX-License-Identifier: Apache-2.0
//
// TSP, sequential.
#include "tsp.h"

double tsp_run(const struct tsp *tsp, struct tour *best) {
    struct tour_queue *const queue = dsm_allocate(1, tsp_queue_bytes(tsp));
    const double start = dsm_start();
    tsp_begin(tsp, queue, best);
    for (struct tour tour; tsp_take(tsp, queue, best->length, &tour);) {
        (void)tsp_solve(tsp, &tour, best);
    }
    const double seconds = dsm_stop(start);
    free(queue);
    return seconds;
}
