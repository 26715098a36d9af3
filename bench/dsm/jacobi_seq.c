// SPDX-License-Identifier: Apache-2.0
//
// Jacobi, sequential.
#include "jacobi.h"

struct jacobi_outcome jacobi_run(const struct jacobi *jacobi) {
    const long n = jacobi->size;
    const size_t bytes = (size_t)n * sizeof(double);
    double *now = dsm_allocate((size_t)n, bytes);
    double *next = dsm_allocate((size_t)n, bytes);
    for (long row = 0; row < n; ++row) jacobi_fill_row(jacobi, row, now + row * n);
    memcpy(next, now, (size_t)n * bytes);  // its first and last row stay
    struct jacobi_outcome outcome;
    const double start = dsm_start();
    for (long i = 0; i < jacobi->iterations; ++i) {
        for (long row = 1; row < n - 1; ++row) {
            const double *const here = now + row * n;
            jacobi_row(jacobi, next + row * n, here - n, here, here + n);
        }
        double *const then = now;
        now = next;
        next = then;
    }
    outcome.seconds = dsm_stop(start);
    const struct share all = {0, n};
    outcome.digest = jacobi_digest(jacobi, all, now);
    free(next);
    free(now);
    return outcome;
}
