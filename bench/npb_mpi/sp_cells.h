// SPDX-License-Identifier: Apache-2.0
//
// How NPB SP's cube of points is divided: parts x parts x parts cells among parts x parts ranks,
// so that a rank's cells lie on a diagonal.  It then has exactly one cell in each layer of cells
// across any axis, and a sweep along the axis keeps all ranks at work in every layer.  The
// neighbours of all its cells in one direction belong to one and the same rank.
#ifndef HANARE_NPB_MPI_SP_CELLS_H
#define HANARE_NPB_MPI_SP_CELLS_H

#include "npb_mpi.h"
#include "sp_official.h"

enum {
    kAxes = 3,        // x, y, z
    kComponents = 5,  // density, momentum along each axis, energy
    kFactors = 3,     // of a sweep's matrix, by eigenvalue: v (three components), v + c, v - c
    kHalo = 2,
    kLeastSize = 3  // of a cell along an axis
};

// Along each axis, own points are 0 to size - 1, the halo begins at -kHalo.  All fields are laid
// out alike, with halo, x fastest.
struct sp_cell {
    int coordinates[kAxes];  // among the cells
    int sizes[kAxes];
    int first[kAxes];              // point, in the cube
    int begin[kAxes], end[kAxes];  // own points inside the cube's boundary, which is never changed
    ptrdiff_t strides[kAxes];      // in elements, x has 1
    size_t elements;               // of a field

    double *u[kComponents], *forcing[kComponents];
    double *rhs[kComponents];  // the residual, and what the sweeps make of it
    // Of u: 1 / density, velocities, kinetic energy, the same by density, speed of sound.
    double *inverse, *velocity[kAxes], *kinetic, *specific, *sound;
    // Rows of a sweep's matrix after elimination, scaled to 1 on the diagonal: what is left one and
    // two above it.
    double *next[kFactors], *after[kFactors];
};

enum { kLower, kUpper, kSides };

struct sp_cells {
    const struct npb_world *world;
    int parts;                                // cells along an axis, and of a rank
    struct sp_cell *cells;                    // by layer across z
    int neighbours[kAxes][kSides];            // ranks
    double *sent[kSides], *received[kSides];  // messages
};

// false if the number of ranks is not a square, or cells would be too small.
bool sp_divide(struct sp_cells *all, const struct npb_world *world);

// Fields are 0.  For sp_free(), after sp_divide().
void sp_allocate(struct sp_cells *all);
void sp_free(struct sp_cells *all);

// The cell in layer `number` across an axis.
struct sp_cell *sp_layer(const struct sp_cells *all, int axis, int number);

// Fills the halo of u from the neighbours.
void sp_exchange(const struct sp_cells *all);

// Two planes of several fields, at `position` along an axis: how many elements they are, and
// copying them to and from a message.  Without the cube's boundary.
struct sp_planes {
    const struct sp_cell *cell;
    int axis, position;
    double *const *fields;
    int count;  // of fields
};

int sp_planes_elements(const struct sp_planes *planes);
double *sp_pack(const struct sp_planes *planes, double *to);
const double *sp_unpack(const struct sp_planes *planes, const double *from);

static inline ptrdiff_t sp_at(const struct sp_cell *cell, int x, int y, int z) {
    return (x + kHalo) + (y + kHalo) * cell->strides[1] + (z + kHalo) * cell->strides[2];
}

#endif
