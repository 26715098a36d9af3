// SPDX-License-Identifier: Apache-2.0
//
// NPB MG (RNR-94-007) on distributed memory: V-cycles of a multigrid method approximate the
// solution u of a Poisson equation with periodic boundaries, whose right-hand side v is 0 but at
// twenty points.  Every rank holds a block of each grid.  After the official number of iterations,
// the norm of v - A u must be the official one.
#include <math.h>

#include "mg_grid.h"
#include "mg_passes.h"
#include "npb_mpi.h"
#include "npb_random.h"

#ifndef NPB_ITERATIONS
#define NPB_ITERATIONS OFFICIAL_ITERATIONS
#endif

#if NPB_NUMBER == NPB_NUMBER_S
static const double kOfficialNorm = 0.5307707005734e-04;
#elif NPB_NUMBER == NPB_NUMBER_W
static const double kOfficialNorm = 0.6467329375339e-05;
#elif NPB_NUMBER == NPB_NUMBER_A
static const double kOfficialNorm = 0.2433365309069e-05;
#else
static const double kOfficialNorm = 0.1800564401355e-05;
#endif
static const double kTolerance = 1e-8;

enum { kCharges = 10 };  // of each sign

// The largest numbers of those seen, from the largest.
struct largest {
    double values[kCharges];
};

static void see(struct largest *largest, double value) {
    if (value <= largest->values[kCharges - 1]) return;
    int at = kCharges - 1;
    for (; at > 0 && value > largest->values[at - 1]; --at) {
        largest->values[at] = largest->values[at - 1];
    }
    largest->values[at] = value;
}

// What every rank has seen.
static void merge(const struct mg_grids *grids, struct largest *largest) {
    const int ranks = grids->world->ranks;
    struct largest *const all = npb_allocate(grids->world, (size_t)ranks, sizeof(*all));
    MPI_Allgather(largest, kCharges, MPI_DOUBLE, all, kCharges, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int rank = 0; rank < ranks; ++rank) {
        if (rank == grids->world->rank) continue;
        for (int i = 0; i < kCharges; ++i) see(largest, all[rank].values[i]);
    }
    free(all);
}

// Numbers of the whole cube follow each other along x, then y, then z; every row of this rank's is
// filled from its own place in the sequence.
static void fill_random(const struct mg_grids *grids, const struct mg_level *level) {
    uint64_t before[kAxes];
    for (int axis = 0; axis < kAxes; ++axis) {
        before[axis] = (uint64_t)grids->coordinates[axis] * (uint64_t)level->points[axis];
    }
    for (int z = 1; z <= level->points[2]; ++z) {
        for (int y = 1; y <= level->points[1]; ++y) {
            const uint64_t row = (before[2] + (uint64_t)z - 1) * SIZE + before[1] + (uint64_t)y - 1;
            uint64_t seed = npb_random_jump(NPB_SEED, row * SIZE + before[0]);
            npb_random_fill(&seed, (uint64_t)level->points[0], grids->v + mg_at(level, 1, y, z));
        }
    }
}

// The right-hand side: +1 where a random field is largest, -1 where it is smallest.  Its numbers
// all differ, so values name points.
static void make_charges(struct mg_grids *grids) {
    const struct mg_level *const level = mg_finest(grids);
    struct largest positive = {{0}}, negative = {{0}};  // of 1 - the number
    double *const v = grids->v;
    fill_random(grids, level);
    for (int z = 1; z <= level->points[2]; ++z) {
        for (int y = 1; y <= level->points[1]; ++y) {
            const size_t begin = mg_at(level, 0, y, z);
            for (int x = 1; x <= level->points[0]; ++x) {
                see(&positive, v[begin + x]);
                see(&negative, 1 - v[begin + x]);
            }
        }
    }
    merge(grids, &positive);
    merge(grids, &negative);
    for (int z = 1; z <= level->points[2]; ++z) {
        for (int y = 1; y <= level->points[1]; ++y) {
            const size_t begin = mg_at(level, 0, y, z);
            for (int x = 1; x <= level->points[0]; ++x) {
                v[begin + x] = (v[begin + x] >= positive.values[kCharges - 1]) -
                               (1 - v[begin + x] >= negative.values[kCharges - 1]);
            }
        }
    }
    mg_exchange(level, grids->world->rank, v);
}

static double norm(struct mg_grids *grids) {
    const struct mg_level *const level = mg_finest(grids);
    double sum = 0;
    for (int z = 1; z <= level->points[2]; ++z) {
        for (int y = 1; y <= level->points[1]; ++y) {
            const double *const row = level->r + mg_at(level, 0, y, z);
            for (int x = 1; x <= level->points[0]; ++x) sum += row[x] * row[x];
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sqrt(sum / ((double)SIZE * SIZE * SIZE));
}

static void clear(const struct mg_level *level) {
    memset(level->u, 0, level->elements * sizeof(*level->u));
}

// Residuals go down to the coarsest level, corrections come back up.
static void cycle(struct mg_grids *grids) {
    const int rank = grids->world->rank;
    struct mg_level *const levels = grids->levels;
    for (int i = LEVELS - 2; i >= 0; --i) {
        if (levels[i].alive) mg_project(&levels[i + 1], &levels[i], rank);
    }
    if (levels[0].alive) {
        clear(&levels[0]);
        mg_smooth(&levels[0], rank, levels[0].r, levels[0].u);
    }
    for (int i = 1; i < LEVELS; ++i) {
        struct mg_level *const level = &levels[i];
        const bool finest = i == LEVELS - 1;
        if (!level->alive) continue;
        if (!finest) clear(level);
        mg_interpolate(&levels[i - 1], level);
        mg_residual(level, rank, level->u, finest ? grids->v : level->r, level->r);
        mg_smooth(level, rank, level->r, level->u);
    }
}

static void iterate(struct mg_grids *grids, int iterations) {
    const struct mg_level *const level = mg_finest(grids);
    const int rank = grids->world->rank;
    mg_residual(level, rank, level->u, grids->v, level->r);
    for (int i = 0; i < iterations; ++i) {
        cycle(grids);
        mg_residual(level, rank, level->u, grids->v, level->r);
    }
}

int main(int argc, char **argv) {
    const struct npb_world world = npb_begin("mg", argc, argv);
    struct mg_grids grids = {0};
    char allowed[64];
    snprintf(allowed, sizeof(allowed), "a power of two from 1 to %d", SIZE * SIZE * SIZE / 8);
    npb_require_ranks(&world, mg_divide(&grids, &world), allowed);
    mg_allocate(&grids);
    make_charges(&grids);
    iterate(&grids, 1);
    clear(mg_finest(&grids));

    const double start = npb_start();
    iterate(&grids, NPB_ITERATIONS);
    const double found = norm(&grids);
    const double seconds = npb_stop(start);

    if (world.rank == 0) {
        printf("NPB MG class %s: %d x %d x %d, %d iterations, %d x %d x %d ranks\n",
               BENCH_TEXT(NPB_CLASS), SIZE, SIZE, SIZE, NPB_ITERATIONS, grids.parts[0],
               grids.parts[1], grids.parts[2]);
        printf("norm %.13e, official %.13e\n", found, kOfficialNorm);
    }
    mg_free(&grids);
    const bool good = fabs(found - kOfficialNorm) <= kTolerance * kOfficialNorm ||
                      world.rank != 0;  // all have the same norm, one complains
    const double points = (double)SIZE * SIZE * SIZE;
    const struct npb_result result = {.seconds = seconds,
                                      .mops = 58e-6 * NPB_ITERATIONS * points / seconds,
                                      .wrong = good ? NULL : "the norm is not the official one"};
    return npb_finish(&world, &result);
}
