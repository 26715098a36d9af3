// SPDX-License-Identifier: Apache-2.0
//
// Jacobi on shared memory: both grids are shared, each process writes its rows of the next one and
// reads one row of each neighbour in this one, which nobody writes until all have met at the
// barrier.  One barrier an iteration, where a grid and a private copy of it would take two.
#include "form_tmk.h"
#include "jacobi.h"

enum { kFilled, kIterated };

struct jacobi_outcome jacobi_run(const struct jacobi *jacobi) {
    const long n = jacobi->size;
    const size_t bytes = (size_t)(n * n) * sizeof(double);
    double *now = form_share(bytes);
    double *next = form_share(bytes);
    const struct share own = own_share(n);
    const struct share all = {0, dsm_init_by == 0 && form_process != 0 ? 0 : n};
    const struct share filled = dsm_init_by == 0 ? all : own;
    for (long row = filled.begin; row < filled.end; ++row) {
        jacobi_fill_row(jacobi, row, now + row * n);
        memcpy(next + row * n, now + row * n, (size_t)n * sizeof(double));
    }
    Tmk_barrier(kFilled);

    const long begin = own.begin == 0 ? 1 : own.begin;
    const long end = own.end == n ? n - 1 : own.end;
    struct jacobi_outcome outcome;
    const double start = dsm_start();
    for (long i = 0; i < jacobi->iterations; ++i) {
        for (long row = begin; row < end; ++row) {
            const double *const here = now + row * n;
            jacobi_row(jacobi, next + row * n, here - n, here, here + n);
        }
        Tmk_barrier(kIterated);
        double *const then = now;
        now = next;
        next = then;
    }
    outcome.seconds = dsm_stop(start);
    const struct share seen = next_share(n);
    outcome.digest = form_sum(jacobi_digest(jacobi, seen, now + seen.begin * n));
    return outcome;
}
