// SPDX-License-Identifier: Apache-2.0
//
// Who owns which points, and the messages between neighbours.
#include "mg_grid.h"

#include <stdlib.h>

enum { kLower, kUpper };
enum { kSent, kReceived };

// One axis in turn, z first, so that rows along x stay long.
bool mg_divide(struct mg_grids *grids, const struct npb_world *world) {
    if (!npb_is_power_of_two(world->ranks)) return false;
    for (int axis = 0; axis < kAxes; ++axis) grids->parts[axis] = 1;
    for (int left = world->ranks, axis = kAxes; left > 1; left /= 2) {
        axis = axis > 0 ? axis - 1 : kAxes - 1;
        grids->parts[axis] *= 2;
    }
    grids->world = world;
    grids->coordinates[0] = world->rank % grids->parts[0];
    grids->coordinates[1] = world->rank / grids->parts[0] % grids->parts[1];
    grids->coordinates[2] = world->rank / (grids->parts[0] * grids->parts[1]);
    return grids->parts[2] <= SIZE / 2;  // every rank has two points an axis or more
}

static int rank_at(const struct mg_grids *grids, const int *coordinates) {
    return coordinates[0] + grids->parts[0] * (coordinates[1] + grids->parts[1] * coordinates[2]);
}

// How many points of `size` belong to the part at `coordinate`.  A coarse point lies on every
// second fine one beginning with the second, hence the last rank of a group.
static int share(int size, int parts, int coordinate) {
    return (coordinate + 1) * size / parts - coordinate * size / parts;
}

static int neighbour(const struct mg_grids *grids, int size, int axis, int direction) {
    const int parts = grids->parts[axis];
    const int step = size < parts ? parts / size : 1;
    int coordinates[kAxes];
    for (int i = 0; i < kAxes; ++i) coordinates[i] = grids->coordinates[i];
    coordinates[axis] = (coordinates[axis] + direction * step + parts) % parts;
    return rank_at(grids, coordinates);
}

static void lay_out(struct mg_grids *grids, int number) {
    struct mg_level *const level = &grids->levels[number];
    const int size = 2 << number;
    level->alive = true;
    level->elements = 1;
    for (int axis = 0; axis < kAxes; ++axis) {
        const int parts = grids->parts[axis], coordinate = grids->coordinates[axis];
        level->points[axis] = share(size, parts, coordinate);
        level->alive = level->alive && level->points[axis] > 0;
        level->thins[axis] = number > 0 && size / 2 < parts;
        level->coarse[axis] = number > 0 && share(size / 2, parts, coordinate) > 0;
        level->neighbours[axis][kLower] = neighbour(grids, size, axis, -1);
        level->neighbours[axis][kUpper] = neighbour(grids, size, axis, +1);
        level->strides[axis] = level->elements;
        level->elements *= (size_t)level->points[axis] + 2;
    }
}

static size_t largest_plane(const struct mg_level *level) {
    size_t largest = 0;
    for (int axis = 0; axis < kAxes; ++axis) {
        const size_t elements = level->elements / ((size_t)level->points[axis] + 2);
        if (elements > largest) largest = elements;
    }
    return largest;
}

static void allocate_planes(struct mg_grids *grids) {
    const size_t elements = largest_plane(mg_finest(grids));
    for (int side = 0; side < kSides; ++side) {
        for (int use = kSent; use <= kReceived; ++use) {
            double *const plane = npb_allocate(grids->world, elements, sizeof(*plane));
            for (int i = 0; i < LEVELS; ++i) grids->levels[i].planes[side][use] = plane;
        }
    }
}

void mg_allocate(struct mg_grids *grids) {
    for (int i = 0; i < LEVELS; ++i) {
        struct mg_level *const level = &grids->levels[i];
        lay_out(grids, i);
        if (!level->alive) continue;
        level->u = npb_allocate(grids->world, level->elements, sizeof(*level->u));
        level->r = npb_allocate(grids->world, level->elements, sizeof(*level->r));
    }
    grids->v = npb_allocate(grids->world, mg_finest(grids)->elements, sizeof(*grids->v));
    allocate_planes(grids);
}

void mg_free(struct mg_grids *grids) {
    for (int i = 0; i < LEVELS; ++i) {
        free(grids->levels[i].u);
        free(grids->levels[i].r);
    }
    for (int side = 0; side < kSides; ++side) {
        free(mg_finest(grids)->planes[side][kSent]);
        free(mg_finest(grids)->planes[side][kReceived]);
    }
    free(grids->v);
}

// A plane across `axis`, whole with the halo of the other axes: what axes before have got from
// their neighbours goes on to those along this one, so edges and corners need no messages.
struct plane {
    size_t begin, rows, row_stride, columns, column_stride;
};

static struct plane plane_at(const struct mg_level *level, int axis, int position) {
    const int inner = axis == 0 ? 1 : 0, outer = axis == 2 ? 1 : 2;
    return (struct plane){.begin = (size_t)position * level->strides[axis],
                          .rows = (size_t)level->points[outer] + 2,
                          .row_stride = level->strides[outer],
                          .columns = (size_t)level->points[inner] + 2,
                          .column_stride = level->strides[inner]};
}

static size_t pack(const struct plane *plane, const double *grid, double *to) {
    for (size_t row = 0; row < plane->rows; ++row) {
        const double *const from = grid + plane->begin + row * plane->row_stride;
        for (size_t column = 0; column < plane->columns; ++column) {
            *to++ = from[column * plane->column_stride];
        }
    }
    return plane->rows * plane->columns;
}

static void unpack(const struct plane *plane, const double *from, double *grid) {
    for (size_t row = 0; row < plane->rows; ++row) {
        double *const to = grid + plane->begin + row * plane->row_stride;
        for (size_t column = 0; column < plane->columns; ++column) {
            to[column * plane->column_stride] = *from++;
        }
    }
}

// A message is named by the side of the sender that it leaves from: with two ranks along an axis
// both neighbours are the same rank.
static int tag(int axis, int side) { return kSides * axis + side; }

static void start_receiving(const struct mg_level *level, int axis, MPI_Request *requests) {
    const size_t elements = level->elements / ((size_t)level->points[axis] + 2);
    for (int side = 0; side < kSides; ++side) {
        MPI_Irecv(level->planes[side][kReceived], (int)elements, MPI_DOUBLE,
                  level->neighbours[axis][side], tag(axis, 1 - side), MPI_COMM_WORLD,
                  &requests[side]);
    }
}

static void send_own(const struct mg_level *level, int axis, const double *grid) {
    for (int side = 0; side < kSides; ++side) {
        const struct plane own = plane_at(level, axis, side == kLower ? 1 : level->points[axis]);
        const size_t elements = pack(&own, grid, level->planes[side][kSent]);
        MPI_Send(level->planes[side][kSent], (int)elements, MPI_DOUBLE,
                 level->neighbours[axis][side], tag(axis, side), MPI_COMM_WORLD);
    }
}

static void finish_receiving(const struct mg_level *level, int axis, MPI_Request *requests,
                             double *grid) {
    MPI_Status statuses[kSides];
    MPI_Waitall(kSides, requests, statuses);
    for (int side = 0; side < kSides; ++side) {
        const struct plane halo =
            plane_at(level, axis, side == kLower ? 0 : level->points[axis] + 1);
        unpack(&halo, level->planes[side][kReceived], grid);
    }
}

// A rank alone on its axis is its own neighbour.
static void wrap(const struct mg_level *level, int axis, double *grid) {
    double *const buffer = level->planes[kLower][kSent];
    for (int side = 0; side < kSides; ++side) {
        const int last = level->points[axis];
        const struct plane own = plane_at(level, axis, side == kLower ? 1 : last);
        const struct plane halo = plane_at(level, axis, side == kLower ? last + 1 : 0);
        pack(&own, grid, buffer);
        unpack(&halo, buffer, grid);
    }
}

void mg_exchange(const struct mg_level *level, int rank, double *grid) {
    for (int axis = 0; axis < kAxes; ++axis) {
        if (level->neighbours[axis][kLower] == rank) {
            wrap(level, axis, grid);
            continue;
        }
        MPI_Request requests[kSides];
        start_receiving(level, axis, requests);
        send_own(level, axis, grid);
        finish_receiving(level, axis, requests, grid);
    }
}

// The plane between is the mean of the two in the halo.
static void fill_between(const struct mg_level *level, int axis, double *grid) {
    double *const lower = level->planes[kLower][kReceived];
    const double *const upper = level->planes[kUpper][kReceived];
    const struct plane own = plane_at(level, axis, 1);
    for (size_t i = 0; i < own.rows * own.columns; ++i) lower[i] = 0.5 * (lower[i] + upper[i]);
    unpack(&own, lower, grid);
}

// A rank without coarse points along two axes gets its values in the last of them, from neighbours
// that got theirs before.
void mg_spread(const struct mg_level *level, double *grid) {
    for (int axis = 0; axis < kAxes; ++axis) {
        if (!level->thins[axis]) continue;
        if (level->coarse[axis]) {
            send_own(level, axis, grid);
        } else {
            MPI_Request requests[kSides];
            start_receiving(level, axis, requests);
            finish_receiving(level, axis, requests, grid);
            fill_between(level, axis, grid);
        }
    }
}
