// SPDX-License-Identifier: Apache-2.0
//
// SOR on shared memory: both colours are shared, each process relaxes its rows, and all meet at a
// barrier after each half of an iteration.
#include "form_tmk.h"
#include "sor.h"

enum { kFilled, kRelaxed };

static void fill(const struct sor *sor, double **grid, struct share rows) {
    const long half = sor->columns / 2;
    for (long row = rows.begin; row < rows.end; ++row) {
        sor_fill_row(sor, row, grid[kRed] + row * half, grid[kBlack] + row * half);
    }
}

struct sor_outcome sor_run(const struct sor *sor) {
    const long half = sor->columns / 2;
    double *grid[kColours];
    for (int colour = 0; colour < kColours; ++colour) {
        grid[colour] = form_share((size_t)(sor->rows * half) * sizeof(double));
    }
    const struct share all = {0, sor->rows}, none = {0, 0};
    const struct share own = own_share(sor->rows);
    fill(sor, grid, dsm_init_by != 0 ? own : form_process == 0 ? all : none);
    Tmk_barrier(kFilled);

    const long begin = own.begin == 0 ? 1 : own.begin;
    const long end = own.end == sor->rows ? sor->rows - 1 : own.end;
    struct sor_outcome outcome;
    const double start = dsm_start();
    for (long i = 0; i < sor->iterations; ++i) {
        for (int colour = 0; colour < kColours; ++colour) {
            for (long row = begin; row < end; ++row) {
                const double *const other = grid[1 - colour] + row * half;
                sor_row(sor, (enum sor_colour)colour, row, grid[colour] + row * half, other,
                        other - half, other + half);
            }
            Tmk_barrier(kRelaxed);
        }
    }
    outcome.seconds = dsm_stop(start);
    const struct share seen = next_share(sor->rows);
    outcome.digest = form_sum(
        sor_digest(sor, seen, grid[kRed] + seen.begin * half, grid[kBlack] + seen.begin * half));
    return outcome;
}
