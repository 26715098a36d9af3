// SPDX-License-Identifier: Apache-2.0
//
// NPB FT under MPI: a partial differential equation solved by three-dimensional Fourier transforms
// (RNR-94-007; distributed in one dimension as in NPB 2).  Random initial values are transformed
// once; every iteration multiplies them by the solution's factors for its time, transforms them
// back, and adds up 1024 of the values, which must be the official sums.
//
// Values are distributed by z, [share_z][NY][NX] on each rank; transformed ones by y,
// [NZ][share_y][NX].  Transforms along x and y are made in the first form, those along z in the
// second, and all ranks exchange blocks [share_z][share_y][NX] in between.
#include <math.h>

#include "ft_lines.h"
#include "ft_official.h"
#include "npb_mpi.h"
#include "npb_random.h"

enum {
    kPoints = NX * NY * NZ,
    kRanksMax = NZ < 64 ? NZ : 64,  // NY is not less
    kChecksumPoints = 1024
};
static const double kAlpha = 1e-6;
static const double kTolerance = 1e-12;

static struct npb_world world;
static int share_z, share_y;  // of a rank

// The rank's share of the transformed values, which each iteration evolves by its factors, and the
// two arrays that it transforms them back in; each share_z * NY * NX == NZ * share_y * NX numbers.
static dcomplex *transformed, *work, *values;
static double *factors;  // of one iteration, for each of the transformed values

static dcomplex sums[OFFICIAL_ITERATIONS];  // on rank 0

static size_t share_points(void) { return (size_t)share_z * NY * NX; }

static void allocate(void) {
    transformed = npb_allocate(&world, share_points(), sizeof(dcomplex));
    work = npb_allocate(&world, share_points(), sizeof(dcomplex));
    values = npb_allocate(&world, share_points(), sizeof(dcomplex));
    factors = npb_allocate(&world, share_points(), sizeof(double));
}

static void release(void) {
    free(factors);
    free(values);
    free(work);
    free(transformed);
}

// Wave numbers are from -size/2 to size/2 - 1.
static int square_of_wave_number(int index, int size) {
    const int number = index < size / 2 ? index : index - size;
    return number * number;
}

static void prepare_factors(void) {
    const double pi = acos(-1.0);
    double *factor = factors;
    for (int z = 0; z < NZ; ++z) {
        for (int y = 0; y < share_y; ++y) {
            const int zy =
                square_of_wave_number(z, NZ) + square_of_wave_number(world.rank * share_y + y, NY);
            for (int x = 0; x < NX; ++x) {
                *factor++ = exp(-4.0 * kAlpha * pi * pi * (zy + square_of_wave_number(x, NX)));
            }
        }
    }
}

// The planes of a rank follow each other in the random sequence.
static void prepare_values(dcomplex *to) {
    uint64_t seed = npb_random_jump(NPB_SEED, 2 * (uint64_t)world.rank * share_points());
    npb_random_fill(&seed, 2 * share_points(), &to[0].re);
}

static void transform_x(dcomplex *in, dcomplex *out, enum ft_direction direction) {
    for (size_t at = 0; at < share_points(); at += kLines * NX) {
        ft_transform_along(in + at, out + at, NX, NX, direction);
    }
}

static void transform_y(dcomplex *array, enum ft_direction direction) {
    for (int z = 0; z < share_z; ++z) {
        for (int x = 0; x < NX; x += kLines) {
            dcomplex *const first = array + (size_t)z * NY * NX + x;
            ft_transform_across(first, first, NY, NX, direction);
        }
    }
}

static void transform_z(dcomplex *in, dcomplex *out, enum ft_direction direction) {
    const int plane = share_y * NX;
    for (int at = 0; at < plane; at += kLines) {
        ft_transform_across(in + at, out + at, NZ, (size_t)plane, direction);
    }
}

static void exchange_blocks(const dcomplex *from, dcomplex *to) {
    const int numbers = 2 * share_z * share_y * NX;
    MPI_Alltoall(from, numbers, MPI_DOUBLE, to, numbers, MPI_DOUBLE, MPI_COMM_WORLD);
}

// Between an array by z and the blocks that each rank sends or receives: the rows of one z and one
// rank are neighbours in both.  An array by y is made of those blocks as it is.
static void copy_rows(dcomplex *by_z, dcomplex *blocks, bool to_blocks) {
    const size_t count = (size_t)share_y * NX;
    dcomplex *block_row = blocks;
    for (int rank = 0; rank < world.ranks; ++rank) {
        for (int z = 0; z < share_z; ++z, block_row += count) {
            dcomplex *const row = by_z + (size_t)z * NY * NX + (size_t)rank * count;
            memcpy(to_blocks ? block_row : row, to_blocks ? row : block_row,
                   count * sizeof(dcomplex));
        }
    }
}

// From `in` by z to `out` by y; both are overwritten.
static void transform_forward(dcomplex *in, dcomplex *out) {
    transform_x(in, in, kForward);
    transform_y(in, kForward);
    copy_rows(in, out, true);
    exchange_blocks(out, in);
    transform_z(in, out, kForward);
}

// From `in` by y to `out` by z; both are overwritten.
static void transform_inverse(dcomplex *in, dcomplex *out) {
    transform_z(in, in, kInverse);
    exchange_blocks(in, out);
    copy_rows(in, out, false);
    transform_y(in, kInverse);
    transform_x(in, out, kInverse);
}

// What every run begins with: the factors and the transformed initial values.
static void prepare(void) {
    ft_prepare();
    prepare_factors();
    prepare_values(work);
    transform_forward(work, transformed);
}

// From the time of the last iteration to that of this one.
static void evolve(void) {
    const size_t count = share_points();
    for (size_t at = 0; at < count; ++at) {
        transformed[at].re *= factors[at];
        transformed[at].im *= factors[at];
        work[at] = transformed[at];
    }
}

static void checksum(dcomplex *sum) {
    dcomplex own = {0, 0};
    for (int j = 1; j <= kChecksumPoints; ++j) {
        const int z = 5 * j % NZ - world.rank * share_z;
        if (z < 0 || z >= share_z) continue;
        const int in_plane = 3 * j % NY * NX + j % NX;
        const dcomplex *const value = values + (size_t)z * NY * NX + in_plane;
        own.re += value->re / kPoints;
        own.im += value->im / kPoints;
    }
    MPI_Reduce(&own, sum, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void iterate(void) {
    for (int i = 0; i < OFFICIAL_ITERATIONS; ++i) {
        evolve();
        transform_inverse(work, values);
        checksum(&sums[i]);
    }
}

static bool is_near(double value, double wanted) {
    return fabs((value - wanted) / wanted) <= kTolerance;
}

// Rank 0 prints the sums, and returns what is wrong, or NULL as the others do.
static const char *verify(void) {
    if (world.rank != 0) return NULL;
    printf("NPB FT class %s: %d x %d x %d, %d iterations\n", BENCH_TEXT(NPB_CLASS), NX, NY, NZ,
           OFFICIAL_ITERATIONS);
    bool good = true;
    for (int i = 0; i < OFFICIAL_ITERATIONS; ++i) {
        printf("checksum %2d: %.12e %.12e\n", i + 1, sums[i].re, sums[i].im);
        good = good && is_near(sums[i].re, official[i].re) && is_near(sums[i].im, official[i].im);
    }
    return good ? NULL : "checksums differ from the official ones";
}

// Millions of operations by the benchmark's own count.
static double operations(void) {
    const double logarithm = log(kPoints);
    return 1e-6 * kPoints *
           (14.8157 + 7.19641 * logarithm + (5.23518 + 7.21113 * logarithm) * OFFICIAL_ITERATIONS);
}

int main(int argc, char **argv) {
    world = npb_begin("ft", argc, argv);
    char allowed_ranks[64];
    snprintf(allowed_ranks, sizeof(allowed_ranks), "a power of two from 1 to %d", kRanksMax);
    npb_require_ranks(&world, npb_is_power_of_two(world.ranks) && world.ranks <= kRanksMax,
                      allowed_ranks);
    share_z = NZ / world.ranks;
    share_y = NY / world.ranks;
    allocate();
    prepare();
    evolve();  // as one untimed iteration touches all memory, and sets up what MPI does on demand
    transform_inverse(work, values);

    const double start = npb_start();
    prepare();
    iterate();
    const double seconds = npb_stop(start);

    const struct npb_result result = {
        .seconds = seconds, .mops = operations() / seconds, .wrong = verify()};
    release();
    return npb_finish(&world, &result);
}
