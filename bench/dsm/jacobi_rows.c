// SPDX-License-Identifier: Apache-2.0
//
// Jacobi by messages, MPI's or PVM's: each process has its rows of both grids, and once an
// iteration gets one row of each neighbour.
#include "halo.h"
#include "jacobi.h"

struct jacobi_outcome jacobi_run(const struct jacobi *jacobi) {
    const size_t n = (size_t)jacobi->size;
    const struct share own = own_share(jacobi->size);
    const long count = own.end - own.begin;
    struct halo now = {dsm_allocate((size_t)count + 2, n * sizeof(double)), count, n};
    struct halo next = {dsm_allocate((size_t)count + 2, n * sizeof(double)), count, n};
    for (long row = 0; row < count; ++row) {
        jacobi_fill_row(jacobi, own.begin + row, now.rows + (size_t)(row + 1) * n);
    }
    memcpy(next.rows, now.rows, ((size_t)count + 2) * n * sizeof(double));

    // Of the process's rows, from 1 on, those that are neither first nor last of the grid.
    const long begin = own.begin == 0 ? 2 : 1;
    const long end = own.end == jacobi->size ? count : count + 1;
    struct jacobi_outcome outcome;
    const double start = dsm_start();
    for (long i = 0; i < jacobi->iterations; ++i) {
        halo_exchange(&now);
        for (long row = begin; row < end; ++row) {
            const double *const here = now.rows + (size_t)row * n;
            jacobi_row(jacobi, next.rows + (size_t)row * n, here - n, here, here + n);
        }
        const struct halo then = now;
        now = next;
        next = then;
    }
    outcome.seconds = dsm_stop(start);
    outcome.digest = form_sum(jacobi_digest(jacobi, own, now.rows + n));
    free(next.rows);
    free(now.rows);
    return outcome;
}
