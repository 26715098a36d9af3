// SPDX-License-Identifier: Apache-2.0
//
// The residual, row by row along x: for each axis central differences of convective fluxes, second
// differences of viscous ones and for stability, and fourth differences, which only dampen.
#include <math.h>

#include "sp_physics.h"

const double sp_weights[kWeights][SIZE] = {
    {[3 ... SIZE - 2] = 1},
    {[2 ... SIZE - 2] = -4},
    {[1] = 5, [2 ... SIZE - 3] = 6, [SIZE - 2] = 5},
    {[1 ... SIZE - 3] = -4},
    {[1 ... SIZE - 4] = 1},
};

// Inlined once for each axis, so that rows are vectorized for a constant one.
#define INLINE static inline __attribute__((always_inline))

// To the next point along an axis.
INLINE ptrdiff_t step_along(const struct sp_cell *cell, int axis) {
    return axis == 0 ? 1 : cell->strides[axis];
}

// What residual and sweeps use of u, also for the first points of the halo.
static void derive(struct sp_cell *cell) {
    const double *const *const u = (const double *const *)cell->u;
    for (int z = -1; z <= cell->sizes[2]; ++z) {
        for (int y = -1; y <= cell->sizes[1]; ++y) {
            const ptrdiff_t row = sp_at(cell, 0, y, z);
#pragma GCC ivdep
            for (ptrdiff_t i = row - 1; i <= row + cell->sizes[0]; ++i) {
                const double inverse = 1 / u[0][i];
                const double squares = u[1][i] * u[1][i] + u[2][i] * u[2][i] + u[3][i] * u[3][i];
                const double kinetic = 0.5 * squares * inverse;
                cell->inverse[i] = inverse;
                for (int axis = 0; axis < kAxes; ++axis) {
                    cell->velocity[axis][i] = u[1 + axis][i] * inverse;
                }
                cell->kinetic[i] = kinetic;
                cell->specific[i] = kinetic * inverse;
                cell->sound[i] = sqrt(kGamma * kPressure * inverse * (u[4][i] - kinetic));
            }
        }
    }
}

static void copy_forcing(struct sp_cell *cell) {
    const size_t bytes = (size_t)(cell->end[0] - cell->begin[0]) * sizeof(double);
    for (int m = 0; m < kComponents; ++m) {
        for (int z = cell->begin[2]; z < cell->end[2]; ++z) {
            for (int y = cell->begin[1]; y < cell->end[1]; ++y) {
                const ptrdiff_t row = sp_at(cell, cell->begin[0], y, z);
                memcpy(cell->rhs[m] + row, cell->forcing[m] + row, bytes);
            }
        }
    }
}

INLINE double first(const double *field, ptrdiff_t at, ptrdiff_t step) {
    return field[at + step] - field[at - step];
}

INLINE double second(const double *field, ptrdiff_t at, ptrdiff_t step) {
    return field[at + step] - 2 * field[at] + field[at - step];
}

// Of products of two fields.
INLINE double first_of(const double *a, const double *b, ptrdiff_t at, ptrdiff_t step) {
    return a[at + step] * b[at + step] - a[at - step] * b[at - step];
}

INLINE double second_of(const double *a, const double *b, ptrdiff_t at, ptrdiff_t step) {
    return a[at + step] * b[at + step] - 2 * a[at] * b[at] + a[at - step] * b[at - step];
}

// Mass and momentum.
INLINE void add_flow(const struct sp_cell *cell, const int axis, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t step = step_along(cell, axis);
    const double viscous = kViscosity * kPerStepSquare;
    const double *const *const u = (const double *const *)cell->u;
    const double *const *const velocity = (const double *const *)cell->velocity;
    double *const *const rhs = cell->rhs;
#pragma GCC ivdep
    for (ptrdiff_t i = begin; i < end; ++i) {
        rhs[0][i] -= kPerTwoSteps * first(u[1 + axis], i, step);
        for (int along = 0; along < kAxes; ++along) {
            const double shear = along == axis ? 4.0 / 3 : 1;
            double flux = first_of(u[1 + along], velocity[axis], i, step);
            if (along == axis) {
                flux += kPressure * (first(u[4], i, step) - first(cell->kinetic, i, step));
            }
            rhs[1 + along][i] +=
                viscous * shear * second(velocity[along], i, step) - kPerTwoSteps * flux;
        }
    }
}

INLINE void add_energy(const struct sp_cell *cell, const int axis, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t step = step_along(cell, axis);
    const double viscous = kViscosity * kPerStepSquare;
    const double *const energy = cell->u[4], *const velocity = cell->velocity[axis];
    double *const rhs = cell->rhs[4];
#pragma GCC ivdep
    for (ptrdiff_t i = begin; i < end; ++i) {
        const double flux = kGamma * first_of(energy, velocity, i, step) -
                            kPressure * first_of(cell->kinetic, velocity, i, step);
        rhs[i] += viscous * ((1 - kConduction) * second(cell->specific, i, step) +
                             1.0 / 6 * second_of(velocity, velocity, i, step) +
                             kConduction * second_of(energy, cell->inverse, i, step)) -
                  kPerTwoSteps * flux;
    }
}

// `place` is where the row begins along the axis, in the cube: only along x it changes in the row.
INLINE void dampen(const struct sp_cell *cell, const int axis, int place, ptrdiff_t begin,
                   ptrdiff_t end) {
    const ptrdiff_t step = step_along(cell, axis);
    const double diffusion = kDiffusion[axis] * kPerStepSquare;
    for (int m = 0; m < kComponents; ++m) {
        const double *const u = cell->u[m];
        double *const rhs = cell->rhs[m];
#pragma GCC ivdep
        for (ptrdiff_t i = begin; i < end; ++i) {
            const ptrdiff_t at = axis == 0 ? place + (i - begin) : place;
            const double fourth = sp_weights[0][at] * u[i - 2 * step] +
                                  sp_weights[1][at] * u[i - step] + sp_weights[2][at] * u[i] +
                                  sp_weights[3][at] * u[i + step] +
                                  sp_weights[4][at] * u[i + 2 * step];
            rhs[i] += diffusion * second(u, i, step) - kDissipation * fourth;
        }
    }
}

INLINE void add_differences(const struct sp_cell *cell, const int axis) {
    for (int z = cell->begin[2]; z < cell->end[2]; ++z) {
        for (int y = cell->begin[1]; y < cell->end[1]; ++y) {
            const int start[kAxes] = {cell->begin[0], y, z};
            const ptrdiff_t row = sp_at(cell, 0, y, z);
            const ptrdiff_t begin = row + cell->begin[0], end = row + cell->end[0];
            add_flow(cell, axis, begin, end);
            add_energy(cell, axis, begin, end);
            dampen(cell, axis, cell->first[axis] + start[axis], begin, end);
        }
    }
}

void sp_residual(struct sp_cell *cell) {
    derive(cell);
    copy_forcing(cell);
    add_differences(cell, 0);
    add_differences(cell, 1);
    add_differences(cell, 2);
}
