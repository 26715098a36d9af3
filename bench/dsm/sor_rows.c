// SPDX-License-Identifier: Apache-2.0
//
// SOR by messages, MPI's or PVM's: each process has its rows of both colours, and gets one row of
// the other colour from each neighbour before each half of an iteration.
#include "halo.h"
#include "sor.h"

struct sor_outcome sor_run(const struct sor *sor) {
    const long half = sor->columns / 2;
    const struct share own = own_share(sor->rows);
    const long count = own.end - own.begin;
    struct halo grid[kColours];
    for (int colour = 0; colour < kColours; ++colour) {
        grid[colour].rows = dsm_allocate((size_t)((count + 2) * half), sizeof(double));
        grid[colour].own = count;
        grid[colour].width = (size_t)half;
    }
    for (long row = 1; row <= count; ++row) {
        sor_fill_row(sor, own.begin + row - 1, grid[kRed].rows + row * half,
                     grid[kBlack].rows + row * half);
    }
    // Of the process's rows, from 1 on, those that are neither first nor last of the grid.
    const long begin = own.begin == 0 ? 2 : 1;
    const long end = own.end == sor->rows ? count : count + 1;
    struct sor_outcome outcome;
    const double start = dsm_start();
    for (long i = 0; i < sor->iterations; ++i) {
        for (int colour = 0; colour < kColours; ++colour) {
            halo_exchange(&grid[1 - colour]);
            for (long row = begin; row < end; ++row) {
                const double *const other = grid[1 - colour].rows + row * half;
                sor_row(sor, (enum sor_colour)colour, own.begin + row - 1,
                        grid[colour].rows + row * half, other, other - half, other + half);
            }
        }
    }
    outcome.seconds = dsm_stop(start);
    outcome.digest =
        form_sum(sor_digest(sor, own, grid[kRed].rows + half, grid[kBlack].rows + half));
    free(grid[kBlack].rows);
    free(grid[kRed].rows);
    return outcome;
}
