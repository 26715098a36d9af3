// SPDX-License-Identifier: Apache-2.0
//
// Cells, their fields, and the halo of u.
#include "sp_cells.h"

static int parts_of(int ranks) {
    int parts = 1;
    while (parts * parts < ranks) ++parts;
    return parts;
}

static int wrap(int number, int parts) { return (number + parts) % parts; }

// The cell of rank (column, row) in layer z is at (column + z, row - z, z), around the ends.
static void place(struct sp_cell *cell, int column, int row, int z, int parts) {
    cell->coordinates[0] = wrap(column + z, parts);
    cell->coordinates[1] = wrap(row - z, parts);
    cell->coordinates[2] = z;
}

static void find_neighbours(struct sp_cells *all, int column, int row) {
    static const int kSteps[kAxes][2] = {{1, 0}, {0, 1}, {-1, 1}};  // of column, row
    for (int axis = 0; axis < kAxes; ++axis) {
        for (int side = kLower; side <= kUpper; ++side) {
            const int sign = side == kUpper ? 1 : -1;
            all->neighbours[axis][side] =
                wrap(column + sign * kSteps[axis][0], all->parts) +
                wrap(row + sign * kSteps[axis][1], all->parts) * all->parts;
        }
    }
}

bool sp_divide(struct sp_cells *all, const struct npb_world *world) {
    all->world = world;
    all->parts = parts_of(world->ranks);
    if (all->parts * all->parts != world->ranks || SIZE / all->parts < kLeastSize) return false;
    find_neighbours(all, world->rank % all->parts, world->rank / all->parts);
    return true;
}

// The first cells have one point more if the size is no multiple of the parts.
static void lay_out(struct sp_cell *cell, int parts) {
    cell->elements = 1;
    for (int axis = 0; axis < kAxes; ++axis) {
        const int number = cell->coordinates[axis], rest = SIZE % parts;
        cell->sizes[axis] = SIZE / parts + (number < rest);
        cell->first[axis] = number * (SIZE / parts) + (number < rest ? number : rest);
        cell->begin[axis] = number == 0;
        cell->end[axis] = cell->sizes[axis] - (number == parts - 1);
        cell->strides[axis] = (ptrdiff_t)cell->elements;
        cell->elements *= (size_t)cell->sizes[axis] + 2 * kHalo;
    }
}

static double *take(const struct sp_cell *cell, double **block) {
    double *const field = *block;
    *block += cell->elements;
    return field;
}

// One block for all fields; u is at its beginning.
static void allocate_fields(struct sp_cell *cell, const struct npb_world *world) {
    enum { kFields = 3 * kComponents + kAxes + 4 + 2 * kFactors };
    double *block = npb_allocate(world, kFields * cell->elements, sizeof(*block));
    for (int m = 0; m < kComponents; ++m) cell->u[m] = take(cell, &block);
    for (int m = 0; m < kComponents; ++m) cell->rhs[m] = take(cell, &block);
    for (int m = 0; m < kComponents; ++m) cell->forcing[m] = take(cell, &block);
    for (int axis = 0; axis < kAxes; ++axis) cell->velocity[axis] = take(cell, &block);
    cell->inverse = take(cell, &block);
    cell->kinetic = take(cell, &block);
    cell->specific = take(cell, &block);
    cell->sound = take(cell, &block);
    for (int factor = 0; factor < kFactors; ++factor) {
        cell->next[factor] = take(cell, &block);
        cell->after[factor] = take(cell, &block);
    }
}

// Of a sweep, two planes of one cell in 11 fields; of u, two planes of all cells but one.
static size_t largest_message(int parts) {
    const size_t size = (size_t)(SIZE + parts - 1) / (size_t)parts;
    const size_t sweep = 2 * (kComponents + 2 * kFactors), faces = 2 * kComponents;
    const size_t all_faces = faces * (size_t)(parts - 1);
    return size * size * (sweep > all_faces ? sweep : all_faces);
}

void sp_allocate(struct sp_cells *all) {
    const struct npb_world *const world = all->world;
    const int column = world->rank % all->parts, row = world->rank / all->parts;
    all->cells = npb_allocate(world, (size_t)all->parts, sizeof(*all->cells));
    for (int z = 0; z < all->parts; ++z) {
        place(&all->cells[z], column, row, z, all->parts);
        lay_out(&all->cells[z], all->parts);
        allocate_fields(&all->cells[z], world);
    }
    for (int side = kLower; side <= kUpper; ++side) {
        all->sent[side] = npb_allocate(world, largest_message(all->parts), sizeof(double));
        all->received[side] = npb_allocate(world, largest_message(all->parts), sizeof(double));
    }
}

void sp_free(struct sp_cells *all) {
    for (int z = 0; z < all->parts; ++z) free(all->cells[z].u[0]);
    free(all->cells);
    for (int side = kLower; side <= kUpper; ++side) {
        free(all->sent[side]);
        free(all->received[side]);
    }
}

struct sp_cell *sp_layer(const struct sp_cells *all, int axis, int number) {
    struct sp_cell *cell = all->cells;
    while (cell->coordinates[axis] != number) ++cell;
    return cell;
}

struct range {
    int begin[kAxes], end[kAxes];
};

static struct range range_of(const struct sp_planes *planes) {
    struct range range;
    for (int axis = 0; axis < kAxes; ++axis) {
        range.begin[axis] = planes->cell->begin[axis];
        range.end[axis] = planes->cell->end[axis];
    }
    range.begin[planes->axis] = planes->position;
    range.end[planes->axis] = planes->position + 2;
    return range;
}

int sp_planes_elements(const struct sp_planes *planes) {
    const struct range range = range_of(planes);
    int elements = planes->count;
    for (int axis = 0; axis < kAxes; ++axis) elements *= range.end[axis] - range.begin[axis];
    return elements;
}

double *sp_pack(const struct sp_planes *planes, double *to) {
    const struct range range = range_of(planes);
    for (int i = 0; i < planes->count; ++i) {
        for (int z = range.begin[2]; z < range.end[2]; ++z) {
            for (int y = range.begin[1]; y < range.end[1]; ++y) {
                const double *const row = planes->fields[i] + sp_at(planes->cell, 0, y, z);
                for (int x = range.begin[0]; x < range.end[0]; ++x) *to++ = row[x];
            }
        }
    }
    return to;
}

const double *sp_unpack(const struct sp_planes *planes, const double *from) {
    const struct range range = range_of(planes);
    for (int i = 0; i < planes->count; ++i) {
        for (int z = range.begin[2]; z < range.end[2]; ++z) {
            for (int y = range.begin[1]; y < range.end[1]; ++y) {
                double *const row = planes->fields[i] + sp_at(planes->cell, 0, y, z);
                for (int x = range.begin[0]; x < range.end[0]; ++x) row[x] = *from++;
            }
        }
    }
    return from;
}

static struct sp_planes planes_of_u(const struct sp_cell *cell, int axis, int position) {
    return (struct sp_planes){cell, axis, position, cell->u, kComponents};
}

// What goes to the upper side leaves all cells but the last layer's, which have no neighbour there,
// and reaches all but the first layer's.
static int pack_side(const struct sp_cells *all, int axis, int side) {
    double *to = all->sent[side];
    for (int i = 0; i < all->parts - 1; ++i) {
        const struct sp_cell *const cell = sp_layer(all, axis, side == kUpper ? i : i + 1);
        const int position = side == kUpper ? cell->sizes[axis] - kHalo : 0;
        const struct sp_planes planes = planes_of_u(cell, axis, position);
        to = sp_pack(&planes, to);
    }
    return (int)(to - all->sent[side]);
}

static void unpack_side(const struct sp_cells *all, int axis, int side) {
    const double *from = all->received[side];
    for (int i = 0; i < all->parts - 1; ++i) {
        const struct sp_cell *const cell = sp_layer(all, axis, side == kUpper ? i : i + 1);
        const int position = side == kUpper ? cell->sizes[axis] : -kHalo;
        const struct sp_planes planes = planes_of_u(cell, axis, position);
        from = sp_unpack(&planes, from);
    }
}

static void exchange_along(const struct sp_cells *all, int axis) {
    const int most = (int)largest_message(all->parts);
    MPI_Request requests[kSides];
    MPI_Status statuses[kSides];
    for (int side = kLower; side <= kUpper; ++side) {
        // Tags name the side that a message leaves from: both neighbours may be the same rank.
        MPI_Irecv(all->received[side], most, MPI_DOUBLE, all->neighbours[axis][side], 1 - side,
                  MPI_COMM_WORLD, &requests[side]);
    }
    for (int side = kLower; side <= kUpper; ++side) {
        const int elements = pack_side(all, axis, side);
        MPI_Send(all->sent[side], elements, MPI_DOUBLE, all->neighbours[axis][side], side,
                 MPI_COMM_WORLD);
    }
    MPI_Waitall(kSides, requests, statuses);
    for (int side = kLower; side <= kUpper; ++side) unpack_side(all, axis, side);
}

void sp_exchange(const struct sp_cells *all) {
    if (all->parts == 1) return;
    for (int axis = 0; axis < kAxes; ++axis) exchange_along(all, axis);
}
