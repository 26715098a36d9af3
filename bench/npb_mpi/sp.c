// SPDX-License-Identifier: Apache-2.0
//
// NPB SP (RNR-94-007) on distributed memory: a nonlinear system of five partial differential
// equations in a cube is brought towards its steady state in time steps, each approximately
// factored into scalar pentadiagonal systems along x, y and z.  After the official number of steps,
// norms of the residual and of the difference from the exact solution must be the official ones.
#include <math.h>

#include "sp_physics.h"

#ifndef NPB_STEPS
#define NPB_STEPS OFFICIAL_STEPS
#endif

static const double kTolerance = 1e-8;

// rhs = the residual of u.
static void find_residual(const struct sp_cells *all) {
    sp_exchange(all);
    for (int i = 0; i < all->parts; ++i) sp_residual(&all->cells[i]);
}

static void add(const struct sp_cell *cell) {
    for (int m = 0; m < kComponents; ++m) {
        for (int z = cell->begin[2]; z < cell->end[2]; ++z) {
            for (int y = cell->begin[1]; y < cell->end[1]; ++y) {
                const ptrdiff_t row = sp_at(cell, 0, y, z);
                double *const u = cell->u[m] + row;
                const double *const change = cell->rhs[m] + row;
                for (int x = cell->begin[0]; x < cell->end[0]; ++x) u[x] += change[x];
            }
        }
    }
}

static void step(const struct sp_cells *all, int steps) {
    for (int i = 0; i < steps; ++i) {
        find_residual(all);
        sp_solve(all);
        for (int cell = 0; cell < all->parts; ++cell) add(&all->cells[cell]);
    }
}

// Adds the squares of the residual, which is 0 on the boundary.
static void add_residual(const struct sp_cell *cell, double sums[kComponents]) {
    for (int m = 0; m < kComponents; ++m) {
        for (int z = cell->begin[2]; z < cell->end[2]; ++z) {
            for (int y = cell->begin[1]; y < cell->end[1]; ++y) {
                const double *const row = cell->rhs[m] + sp_at(cell, 0, y, z);
                for (int x = cell->begin[0]; x < cell->end[0]; ++x) sums[m] += row[x] * row[x];
            }
        }
    }
}

static void add_error(const struct sp_cell *cell, double sums[kComponents]) {
    for (int z = cell->begin[2]; z < cell->end[2]; ++z) {
        for (int y = cell->begin[1]; y < cell->end[1]; ++y) {
            for (int x = cell->begin[0]; x < cell->end[0]; ++x) {
                const double point[kAxes] = {(cell->first[0] + x) / kPerStep,
                                             (cell->first[1] + y) / kPerStep,
                                             (cell->first[2] + z) / kPerStep};
                double exact[kComponents];
                sp_exact(point, exact);
                for (int m = 0; m < kComponents; ++m) {
                    const double error = cell->u[m][sp_at(cell, x, y, z)] - exact[m];
                    sums[m] += error * error;
                }
            }
        }
    }
}

// On all ranks.
static void finish_norm(double sums[kComponents]) {
    MPI_Allreduce(MPI_IN_PLACE, sums, kComponents, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    const double inside = SIZE - 2;
    for (int m = 0; m < kComponents; ++m) sums[m] = sqrt(sums[m] / (inside * inside * inside));
}

static struct sp_norms find_norms(const struct sp_cells *all) {
    struct sp_norms norms = {0};
    find_residual(all);
    for (int i = 0; i < all->parts; ++i) {
        add_residual(&all->cells[i], norms.residual);
        add_error(&all->cells[i], norms.error);
    }
    finish_norm(norms.residual);
    finish_norm(norms.error);
    return norms;
}

static int count_good(const char *name, const double *found, const double *wanted) {
    int good = 0;
    for (int m = 0; m < kComponents; ++m) {
        printf("%s %d: %.13e, official %.13e\n", name, m + 1, found[m], wanted[m]);
        good += fabs(found[m] - wanted[m]) <= kTolerance * wanted[m];
    }
    return good;
}

static bool verify(const struct sp_norms *norms) {
    const int good = count_good("residual", norms->residual, sp_official.residual) +
                     count_good("error", norms->error, sp_official.error);
    return good == 2 * kComponents;
}

// Millions of operations by the benchmark's own count.
static double operations(void) {
    const double n = SIZE;
    return 1e-6 * NPB_STEPS * (881.174 * n * n * n - 4683.91 * n * n + 11484.5 * n - 19272.4);
}

int main(int argc, char **argv) {
    const struct npb_world world = npb_begin("sp", argc, argv);
    struct sp_cells all = {0};
    char allowed[64];
    snprintf(allowed, sizeof(allowed), "a square number from 1 to %d",
             SIZE / kLeastSize * (SIZE / kLeastSize));
    npb_require_ranks(&world, sp_divide(&all, &world), allowed);
    sp_allocate(&all);
    sp_force(&all);
    sp_begin(&all);
    step(&all, 1);
    sp_begin(&all);

    const double start = npb_start();
    step(&all, NPB_STEPS);
    const double seconds = npb_stop(start);

    const struct sp_norms norms = find_norms(&all);
    bool good = true;  // all ranks have the same norms, one complains
    if (world.rank == 0) {
        printf("NPB SP class %s: %d x %d x %d, %d time steps of %g, %d x %d x %d cells\n",
               BENCH_TEXT(NPB_CLASS), SIZE, SIZE, SIZE, NPB_STEPS, kTimeStep, all.parts, all.parts,
               all.parts);
        good = verify(&norms);
    }
    sp_free(&all);
    const struct npb_result result = {.seconds = seconds,
                                      .mops = operations() / seconds,
                                      .wrong = good ? NULL : "norms are not the official ones"};
    return npb_finish(&world, &result);
}
