// SPDX-License-Identifier: Apache-2.0
//
// The approximate factorization of one time step: a sweep along each axis solves scalar
// pentadiagonal systems, three alike for the eigenvalue v and one each for v + c and v - c, between
// changes of variables in which they are scalar.  Sweeps go through the layers of cells, forward
// eliminating and back substituting; what a layer needs of the one before comes as a message.
#include <math.h>

#include "sp_physics.h"

#define INLINE static inline __attribute__((always_inline))

// Components 0 to 2 belong to the first factor.
INLINE int factor_of(int component) { return component < 3 ? 0 : component - 2; }

// A row of the factors' matrices.  It has no unknowns on the boundary of the cube, which does not
// change.  Matrices are identity + time step * (differences of the flux' linearization).
struct matrix_row {
    double before[kFactors], diagonal, next[kFactors];  // distances -1, 0, 1
    double ends[2];                                     // distances -2, 2
};

// What the implicit side takes for viscosity: a bound, of the greatest coefficient there is.
INLINE double spread(const struct sp_cell *cell, const int axis, ptrdiff_t at) {
    return kDiffusion[axis] + kConduction * kViscosity * cell->inverse[at];
}

INLINE struct matrix_row row_at(const struct sp_cell *cell, const int axis, ptrdiff_t at,
                                ptrdiff_t step, ptrdiff_t place) {
    const double first = kTimeStep * kPerTwoSteps, second = kTimeStep * kPerStepSquare;
    const double fourth = kTimeStep * kDissipation;
    static const double kSign[kFactors] = {0, 1, -1};
    const double *const velocity = cell->velocity[axis], *const sound = cell->sound;
    const double before = fourth * sp_weights[1][place] - second * spread(cell, axis, at - step);
    const double next = fourth * sp_weights[3][place] - second * spread(cell, axis, at + step);
    struct matrix_row row;
    for (int factor = 0; factor < kFactors; ++factor) {
        const double sign = kSign[factor];
        row.before[factor] = before - first * (velocity[at - step] + sign * sound[at - step]);
        row.next[factor] = next + first * (velocity[at + step] + sign * sound[at + step]);
    }
    row.diagonal = 1 + 2 * second * spread(cell, axis, at) + fourth * sp_weights[2][place];
    row.ends[0] = fourth * sp_weights[0][place];
    row.ends[1] = fourth * sp_weights[4][place];
    return row;
}

// Eliminates the unknowns two and one before, whose rows are done, and scales the row.
INLINE void eliminate(const struct sp_cell *cell, const struct matrix_row *row, ptrdiff_t at,
                      ptrdiff_t step) {
    double before[kFactors], scale[kFactors];
    for (int factor = 0; factor < kFactors; ++factor) {
        double *const next = cell->next[factor], *const after = cell->after[factor];
        before[factor] = row->before[factor] - row->ends[0] * next[at - 2 * step];
        scale[factor] = 1 / (row->diagonal - row->ends[0] * after[at - 2 * step] -
                             before[factor] * next[at - step]);
        next[at] = scale[factor] * (row->next[factor] - before[factor] * after[at - step]);
        after[at] = scale[factor] * row->ends[1];
    }
    for (int m = 0; m < kComponents; ++m) {
        double *const rhs = cell->rhs[m];
        const int factor = factor_of(m);
        rhs[at] = scale[factor] *
                  (rhs[at] - row->ends[0] * rhs[at - 2 * step] - before[factor] * rhs[at - step]);
    }
}

INLINE void substitute(const struct sp_cell *cell, ptrdiff_t at, ptrdiff_t step) {
    for (int m = 0; m < kComponents; ++m) {
        double *const rhs = cell->rhs[m];
        const int factor = factor_of(m);
        rhs[at] -=
            cell->next[factor][at] * rhs[at + step] + cell->after[factor][at] * rhs[at + 2 * step];
    }
}

// Points in storage order; any axis then has those before a point done before it.
INLINE void forward(const struct sp_cell *cell, const int axis) {
    const ptrdiff_t step = axis == 0 ? 1 : cell->strides[axis];
    for (int z = cell->begin[2]; z < cell->end[2]; ++z) {
        for (int y = cell->begin[1]; y < cell->end[1]; ++y) {
            const ptrdiff_t begin = sp_at(cell, 0, y, z);
            const int across = cell->first[axis] + (axis == 1 ? y : z);
            if (axis == 0) {
                for (int x = cell->begin[0]; x < cell->end[0]; ++x) {
                    const struct matrix_row row =
                        row_at(cell, axis, begin + x, step, cell->first[0] + x);
                    eliminate(cell, &row, begin + x, step);
                }
                continue;
            }
#pragma GCC ivdep  // points of a row belong to different systems
            for (int x = cell->begin[0]; x < cell->end[0]; ++x) {
                const struct matrix_row row = row_at(cell, axis, begin + x, step, across);
                eliminate(cell, &row, begin + x, step);
            }
        }
    }
}

INLINE void backward(const struct sp_cell *cell, const int axis) {
    const ptrdiff_t step = axis == 0 ? 1 : cell->strides[axis];
    for (int z = cell->end[2] - 1; z >= cell->begin[2]; --z) {
        for (int y = cell->end[1] - 1; y >= cell->begin[1]; --y) {
            const ptrdiff_t begin = sp_at(cell, 0, y, z);
            if (axis == 0) {
                for (int x = cell->end[0] - 1; x >= cell->begin[0]; --x) {
                    substitute(cell, begin + x, step);
                }
                continue;
            }
#pragma GCC ivdep  // points of a row belong to different systems
            for (int x = cell->begin[0]; x < cell->end[0]; ++x) {
                substitute(cell, begin + x, step);
            }
        }
    }
}

// From the fields' components to those of the sweep along x; also times the time step.
INLINE void change_to_x(const struct sp_cell *cell, ptrdiff_t at) {
    double *const *const rhs = cell->rhs;
    const double half = sqrt(0.5), sound = cell->sound[at], inverse = cell->inverse[at];
    const double u = cell->velocity[0][at], v = cell->velocity[1][at], w = cell->velocity[2][at];
    double r[kComponents];
    for (int m = 0; m < kComponents; ++m) r[m] = kTimeStep * rhs[m][at];
    const double energy = cell->specific[at] * r[0] - u * r[1] - v * r[2] - w * r[3] + r[4];
    const double entropy = kPressure / (sound * sound) * energy;
    const double shift = half * inverse * (u * r[0] - r[1]);
    const double pressure = half * inverse * sound * entropy;
    rhs[0][at] = r[0] - entropy;
    rhs[1][at] = -inverse * (w * r[0] - r[3]);
    rhs[2][at] = inverse * (v * r[0] - r[2]);
    rhs[3][at] = pressure - shift;
    rhs[4][at] = pressure + shift;
}

INLINE void change_x_to_y(const struct sp_cell *cell, ptrdiff_t at) {
    double *const *const rhs = cell->rhs;
    const double half = sqrt(0.5), shift = half * rhs[2][at];
    const double mean = 0.5 * (rhs[3][at] + rhs[4][at]);
    const double first = rhs[0][at];
    rhs[0][at] = -rhs[1][at];
    rhs[1][at] = first;
    rhs[2][at] = half * (rhs[3][at] - rhs[4][at]);
    rhs[3][at] = mean - shift;
    rhs[4][at] = mean + shift;
}

INLINE void change_y_to_z(const struct sp_cell *cell, ptrdiff_t at) {
    double *const *const rhs = cell->rhs;
    const double half = sqrt(0.5), shift = half * rhs[0][at];
    const double mean = 0.5 * (rhs[3][at] + rhs[4][at]);
    const double second = rhs[1][at];
    rhs[0][at] = half * (rhs[3][at] - rhs[4][at]);
    rhs[1][at] = -rhs[2][at];
    rhs[2][at] = second;
    rhs[3][at] = mean - shift;
    rhs[4][at] = mean + shift;
}

INLINE void change_from_z(const struct sp_cell *cell, ptrdiff_t at) {
    double *const *const rhs = cell->rhs;
    const double density = cell->u[0][at], sound = cell->sound[at], half = sqrt(0.5);
    const double u = cell->velocity[0][at], v = cell->velocity[1][at], w = cell->velocity[2][at];
    const double x = density * rhs[1][at], y = density * rhs[0][at];
    const double wave = half * density / sound * (rhs[3][at] + rhs[4][at]);
    const double mass = rhs[2][at] + wave;
    const double z = half * density * (rhs[3][at] - rhs[4][at]);
    rhs[0][at] = mass;
    rhs[1][at] = u * mass - x;
    rhs[2][at] = v * mass + y;
    rhs[3][at] = w * mass + z;
    rhs[4][at] =
        v * y - u * x + cell->specific[at] * mass + sound * sound / kPressure * wave + w * z;
}

typedef void change_at(const struct sp_cell *cell, ptrdiff_t at);

INLINE void change(const struct sp_cell *cell, change_at *change_point) {
    for (int z = cell->begin[2]; z < cell->end[2]; ++z) {
        for (int y = cell->begin[1]; y < cell->end[1]; ++y) {
            const ptrdiff_t begin = sp_at(cell, 0, y, z);
#pragma GCC ivdep
            for (int x = cell->begin[0]; x < cell->end[0]; ++x) change_point(cell, begin + x);
        }
    }
}

static void forward_along(const struct sp_cell *cell, int axis) {
    switch (axis) {
        case 0: forward(cell, 0); break;
        case 1: forward(cell, 1); break;
        default: forward(cell, 2); break;
    }
}

static void backward_along(const struct sp_cell *cell, int axis) {
    switch (axis) {
        case 0: backward(cell, 0); break;
        case 1: backward(cell, 1); break;
        default: backward(cell, 2); break;
    }
}

static void change_after(const struct sp_cell *cell, int axis) {
    switch (axis) {
        case 0: change(cell, change_x_to_y); break;
        case 1: change(cell, change_y_to_z); break;
        default: change(cell, change_from_z); break;
    }
}

// Of a cell: solutions, or all that elimination leaves.
enum { kSweepFields = kComponents + 2 * kFactors };

static void sweep_fields(const struct sp_cell *cell, double *fields[kSweepFields]) {
    for (int m = 0; m < kComponents; ++m) *fields++ = cell->rhs[m];
    for (int factor = 0; factor < kFactors; ++factor) {
        *fields++ = cell->next[factor];
        *fields++ = cell->after[factor];
    }
}

// One direction of a sweep.
struct sweep {
    const struct sp_cells *all;
    int axis, to;  // the side that it goes to
    int count;     // of fields in its messages
    void (*pass)(const struct sp_cell *cell, int axis);
    MPI_Request request;
};

// What comes fills the halo at the side that the sweep comes from.
static struct sp_planes halo_planes(const struct sweep *sweep, const struct sp_cell *cell,
                                    double *const *fields) {
    const int position = sweep->to == kUpper ? -kHalo : cell->sizes[sweep->axis];
    return (struct sp_planes){cell, sweep->axis, position, fields, sweep->count};
}

static struct sp_planes last_planes(const struct sweep *sweep, const struct sp_cell *cell,
                                    double *const *fields) {
    const int position = sweep->to == kUpper ? cell->sizes[sweep->axis] - kHalo : 0;
    return (struct sp_planes){cell, sweep->axis, position, fields, sweep->count};
}

static void start_receiving(struct sweep *sweep, const struct sp_cell *cell) {
    double *fields[kSweepFields];
    sweep_fields(cell, fields);
    const struct sp_planes planes = halo_planes(sweep, cell, fields);
    MPI_Irecv(sweep->all->received[0], sp_planes_elements(&planes), MPI_DOUBLE,
              sweep->all->neighbours[sweep->axis][1 - sweep->to], sweep->to, MPI_COMM_WORLD,
              &sweep->request);
}

static void finish_receiving(struct sweep *sweep, const struct sp_cell *cell) {
    double *fields[kSweepFields];
    MPI_Status status;
    sweep_fields(cell, fields);
    const struct sp_planes planes = halo_planes(sweep, cell, fields);
    MPI_Wait(&sweep->request, &status);
    sp_unpack(&planes, sweep->all->received[0]);
}

static void send(const struct sweep *sweep, const struct sp_cell *cell) {
    double *fields[kSweepFields];
    sweep_fields(cell, fields);
    const struct sp_planes planes = last_planes(sweep, cell, fields);
    sp_pack(&planes, sweep->all->sent[0]);
    MPI_Send(sweep->all->sent[0], sp_planes_elements(&planes), MPI_DOUBLE,
             sweep->all->neighbours[sweep->axis][sweep->to], sweep->to, MPI_COMM_WORLD);
}

// A layer's message is awaited from before this one is passed, so that no two ranks that send to
// each other wait for each other.
static void run(struct sweep *sweep) {
    const int parts = sweep->all->parts, axis = sweep->axis;
    const bool up = sweep->to == kUpper;
    for (int i = 0; i < parts; ++i) {
        const struct sp_cell *const cell = sp_layer(sweep->all, axis, up ? i : parts - 1 - i);
        if (i > 0) finish_receiving(sweep, cell);
        if (i < parts - 1) {
            start_receiving(sweep, sp_layer(sweep->all, axis, up ? i + 1 : parts - 2 - i));
        }
        sweep->pass(cell, axis);
        if (i < parts - 1) send(sweep, cell);
    }
}

void sp_solve(const struct sp_cells *all) {
    for (int i = 0; i < all->parts; ++i) change(&all->cells[i], change_to_x);
    for (int axis = 0; axis < kAxes; ++axis) {
        struct sweep up = {
            .all = all, .axis = axis, .to = kUpper, .count = kSweepFields, .pass = forward_along};
        struct sweep down = {
            .all = all, .axis = axis, .to = kLower, .count = kComponents, .pass = backward_along};
        run(&up);
        run(&down);
        for (int i = 0; i < all->parts; ++i) change_after(&all->cells[i], axis);
    }
}
