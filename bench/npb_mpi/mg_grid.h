// SPDX-License-Identifier: Apache-2.0
//
// The grids of NPB MG: a periodic cube of SIZE points an axis, and LEVELS - 1 coarser ones, each of
// half the points an axis down to two.  A power of two of ranks divides every axis.  On a coarse
// grid there may be fewer points along an axis than parts of it; then only the last rank of each
// group owns one, and ranks without points take no part in that level.
#ifndef HANARE_NPB_MPI_MG_GRID_H
#define HANARE_NPB_MPI_MG_GRID_H

#include "npb_mpi.h"

#if NPB_NUMBER == NPB_NUMBER_S
enum { SIZE = 32, LEVELS = 5, OFFICIAL_ITERATIONS = 4 };
#elif NPB_NUMBER == NPB_NUMBER_W
enum { SIZE = 128, LEVELS = 7, OFFICIAL_ITERATIONS = 4 };
#elif NPB_NUMBER == NPB_NUMBER_A
enum { SIZE = 256, LEVELS = 8, OFFICIAL_ITERATIONS = 4 };
#else
enum { SIZE = 256, LEVELS = 8, OFFICIAL_ITERATIONS = 20 };
#endif

enum { kAxes = 3, kSides = 2 };  // axes are x, y, z; sides are lower, upper

// A rank's share of one level.  Along each axis its own points are 1 to points[axis]; 0 and
// points[axis] + 1 are the halo, copies of the neighbours' points.
struct mg_level {
    int points[kAxes];
    size_t strides[kAxes];  // in elements, x has 1
    size_t elements;        // of a grid, with its halo
    int neighbours[kAxes][kSides];
    bool alive;                 // owns points
    bool thins[kAxes];          // the next coarser level has fewer points than ranks along the axis
    bool coarse[kAxes];         // this rank owns points of the next coarser level along the axis
    double *u, *r;              // solution (of the coarse levels: correction), residual
    double *planes[kSides][2];  // to send and to receive; shared by all levels
};

struct mg_grids {
    const struct npb_world *world;
    int parts[kAxes];                // of each axis
    int coordinates[kAxes];          // this rank's, among the parts
    struct mg_level levels[LEVELS];  // from the coarsest
    double *v;                       // the right-hand side, on the finest level
};

// Divides the axes among ranks; false if their number is not one that can be.
bool mg_divide(struct mg_grids *grids, const struct npb_world *world);

// Lays the levels out and allocates this rank's share of them, for mg_free().
void mg_allocate(struct mg_grids *grids);
void mg_free(struct mg_grids *grids);

// Fills a grid's halo from the neighbours.  Collective among the ranks alive on the level.
void mg_exchange(const struct mg_level *level, int rank, double *grid);

// Ranks that own no coarse points along an axis get their (one) plane there as the mean of their
// neighbours', and these as their halo.
void mg_spread(const struct mg_level *level, double *grid);

static inline struct mg_level *mg_finest(struct mg_grids *grids) {
    return &grids->levels[LEVELS - 1];
}

static inline size_t mg_at(const struct mg_level *level, int x, int y, int z) {
    return (size_t)x + (size_t)y * level->strides[1] + (size_t)z * level->strides[2];
}

#endif
