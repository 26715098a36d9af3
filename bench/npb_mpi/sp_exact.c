// SPDX-License-Identifier: Apache-2.0
//
// The exact solution, and what follows from it: the boundary, the beginning, the forcing.
#include "sp_physics.h"

// Each component is a constant and for each axis a polynomial, from the first power.
enum { kPowers = 4 };
static const struct {
    double constant, powers[kAxes][kPowers];
} kExact[kComponents] = {
    {2, {{0, 5, .02, .5}, {0, 3, .01, .4}, {4, .5, .03, .3}}},
    {1, {{0, 1, .01, .4}, {0, 2, .03, .3}, {0, 3, .02, .5}}},
    {2, {{2, 0, .04, .3}, {0, 2, .03, .5}, {0, 3, .05, .4}}},
    {2, {{2, 0, .03, .2}, {0, 2, .05, .1}, {0, 3, .04, .3}}},
    {5, {{4, .1, .05, .1}, {3, .4, .04, .3}, {2, .3, .03, .2}}},
};

void sp_exact(const double point[kAxes], double value[kComponents]) {
    for (int m = 0; m < kComponents; ++m) {
        value[m] = kExact[m].constant;
        for (int axis = 0; axis < kAxes; ++axis) {
            const double *const power = kExact[m].powers[axis], at = point[axis];
            value[m] += at * (power[0] + at * (power[1] + at * (power[2] + at * power[3])));
        }
    }
}

// Between the two ends of the line along `axis` through the point.
static void interpolate(const double point[kAxes], int axis, double value[kComponents]) {
    double end[kAxes], lower[kComponents], upper[kComponents];
    memcpy(end, point, sizeof(end));
    end[axis] = 0;
    sp_exact(end, lower);
    end[axis] = 1;
    sp_exact(end, upper);
    for (int m = 0; m < kComponents; ++m) {
        value[m] = point[axis] * upper[m] + (1 - point[axis]) * lower[m];
    }
}

static void first_value(const double point[kAxes], double value[kComponents]) {
    double x[kComponents], y[kComponents], z[kComponents];
    interpolate(point, 0, x);
    interpolate(point, 1, y);
    interpolate(point, 2, z);
    for (int m = 0; m < kComponents; ++m) {
        value[m] =
            x[m] + y[m] + z[m] - x[m] * y[m] - x[m] * z[m] - y[m] * z[m] + x[m] * y[m] * z[m];
    }
}

typedef void value_at(const double point[kAxes], double value[kComponents]);

static void set(const struct sp_cell *cell, int x, int y, int z, value_at *inside) {
    const int places[kAxes] = {cell->first[0] + x, cell->first[1] + y, cell->first[2] + z};
    double point[kAxes], value[kComponents];
    bool boundary = false;
    for (int axis = 0; axis < kAxes; ++axis) {
        if (places[axis] < 0 || places[axis] >= SIZE) return;
        boundary = boundary || places[axis] == 0 || places[axis] == SIZE - 1;
        point[axis] = places[axis] / kPerStep;
    }
    (boundary ? sp_exact : inside)(point, value);
    const ptrdiff_t at = sp_at(cell, x, y, z);
    for (int m = 0; m < kComponents; ++m) cell->u[m][at] = value[m];
}

// Own points and the halo; what of this lies outside of the cube gets any values that have a
// square root of pressure.
static void fill(const struct sp_cell *cell, value_at *inside) {
    for (size_t i = 0; i < cell->elements; ++i) {
        for (int m = 0; m < kComponents; ++m) cell->u[m][i] = m == 0 || m == kComponents - 1;
    }
    for (int z = -kHalo; z < cell->sizes[2] + kHalo; ++z) {
        for (int y = -kHalo; y < cell->sizes[1] + kHalo; ++y) {
            for (int x = -kHalo; x < cell->sizes[0] + kHalo; ++x) set(cell, x, y, z, inside);
        }
    }
}

void sp_begin(const struct sp_cells *all) {
    for (int i = 0; i < all->parts; ++i) fill(&all->cells[i], first_value);
}

static void force(struct sp_cell *cell) {
    fill(cell, sp_exact);
    sp_residual(cell);
    for (int m = 0; m < kComponents; ++m) {
        for (int z = cell->begin[2]; z < cell->end[2]; ++z) {
            for (int y = cell->begin[1]; y < cell->end[1]; ++y) {
                const ptrdiff_t row = sp_at(cell, 0, y, z);
                for (int x = cell->begin[0]; x < cell->end[0]; ++x) {
                    cell->forcing[m][row + x] = -cell->rhs[m][row + x];
                }
            }
        }
    }
}

void sp_force(const struct sp_cells *all) {
    for (int i = 0; i < all->parts; ++i) force(&all->cells[i]);
}
