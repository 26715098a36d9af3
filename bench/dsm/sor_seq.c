// SPDX-License-Identifier: Apache-2.0
//
// SOR, sequential.
#include "sor.h"

struct sor_outcome sor_run(const struct sor *sor) {
    const long half = sor->columns / 2;
    double *grid[kColours];
    for (int colour = 0; colour < kColours; ++colour) {
        grid[colour] = dsm_allocate((size_t)(sor->rows * half), sizeof(double));
    }
    for (long row = 0; row < sor->rows; ++row) {
        sor_fill_row(sor, row, grid[kRed] + row * half, grid[kBlack] + row * half);
    }
    struct sor_outcome outcome;
    const double start = dsm_start();
    for (long i = 0; i < sor->iterations; ++i) {
        for (int colour = 0; colour < kColours; ++colour) {
            for (long row = 1; row < sor->rows - 1; ++row) {
                const double *const other = grid[1 - colour] + row * half;
                sor_row(sor, (enum sor_colour)colour, row, grid[colour] + row * half, other,
                        other - half, other + half);
            }
        }
    }
    outcome.seconds = dsm_stop(start);
    const struct share all = {0, sor->rows};
    outcome.digest = sor_digest(sor, all, grid[kRed], grid[kBlack]);
    free(grid[kBlack]);
    free(grid[kRed]);
    return outcome;
}
