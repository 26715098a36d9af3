/* SPDX-License-Identifier: Apache-2.0
 *
 * NPB FT: a partial differential equation solved by three-dimensional Fourier transforms
 * (RNR-94-007).  Random initial values are transformed once; every iteration
 * multiplies them by the solution's factors for its time, transforms them back, and adds up 1024 of
 * the values, which must be the official sums.  Arrays and passes over them are those of the
 * program in the DLM paper: factors, then the transforms along z, y and x.
 */
#include <math.h>

#include "dlm_bench.h"
#include "ft_lines.h"
#include "ft_official.h"
#include "npb_class.h"
#include "npb_random.h"

#ifndef NPB_ITERATIONS
#define NPB_ITERATIONS OFFICIAL_ITERATIONS
#endif

enum {
    kPoints = NX * NY * NZ,
    kIndexMax = (NX * NX + NY * NY + NZ * NZ) / 4,
    kChecksumPoints = 1024
};
static const double kAlpha = 1e-6;
static const double kTolerance = 1e-12;

/* The transformed initial values; one iteration's, on the way back and in space; and for each
 * point the square of its wave number. */
dlm dcomplex u0[NZ][NY][NX];
dlm dcomplex u1[NZ][NY][NX];
dlm dcomplex u2[NZ][NY][NX];
dlm int indexmap[NZ][NY][NX];

static double factors[NPB_ITERATIONS * kIndexMax + 1]; /* exp(-4 alpha pi^2 n) */
static dcomplex sums[NPB_ITERATIONS];

typedef dcomplex plane[NY][NX];

/* Wave numbers are from -size/2 to size/2 - 1. */
static int square_of_wave_number(int index, int size) {
    const int number = index < size / 2 ? index : index - size;
    return number * number;
}

static void prepare_factors(void) {
    for (int z = 0; z < NZ; ++z) {
        for (int y = 0; y < NY; ++y) {
            const int zy = square_of_wave_number(z, NZ) + square_of_wave_number(y, NY);
            for (int x = 0; x < NX; ++x) indexmap[z][y][x] = zy + square_of_wave_number(x, NX);
        }
    }
    const double pi = acos(-1.0);
    for (int n = 0; n <= NPB_ITERATIONS * kIndexMax; ++n) {
        factors[n] = exp(-4.0 * kAlpha * pi * pi * n);
    }
}

/* Row by row, each from its own place in the random sequence. */
static void prepare_values(plane *values) {
    for (int row = 0; row < NZ * NY; ++row) {
        uint64_t seed = npb_random_jump(NPB_SEED, 2 * NX * (uint64_t)row);
        npb_random_fill(&seed, 2 * NX, &values[row / NY][row % NY][0].re);
    }
}

static void transform_x(plane *in, plane *out, enum ft_direction direction) {
    for (int z = 0; z < NZ; ++z) {
        for (int y = 0; y < NY; y += kLines) {
            ft_transform_along(in[z][y], out[z][y], NX, NX, direction);
        }
    }
}

static void transform_y(plane *in, plane *out, enum ft_direction direction) {
    for (int z = 0; z < NZ; ++z) {
        for (int x = 0; x < NX; x += kLines) {
            ft_transform_across(&in[z][0][x], &out[z][0][x], NY, NX, direction);
        }
    }
}

static void transform_z(plane *in, plane *out, enum ft_direction direction) {
    for (int y = 0; y < NY; ++y) {
        for (int x = 0; x < NX; x += kLines) {
            ft_transform_across(&in[0][y][x], &out[0][y][x], NZ, (size_t)NX * NY, direction);
        }
    }
}

/* What every run begins with: the factors, and the transformed initial values in u0. */
static void prepare(void) {
    ft_prepare();
    prepare_factors();
    prepare_values(u1);
    transform_z(u1, u1, kForward);
    transform_y(u1, u1, kForward);
    transform_x(u1, u0, kForward);
}

static void evolve(int time) {
    for (int z = 0; z < NZ; ++z) {
        for (int y = 0; y < NY; ++y) {
            for (int x = 0; x < NX; ++x) {
                const double factor = factors[time * indexmap[z][y][x]];
                u1[z][y][x].re = u0[z][y][x].re * factor;
                u1[z][y][x].im = u0[z][y][x].im * factor;
            }
        }
    }
}

static dcomplex checksum(void) {
    dcomplex sum = {0, 0};
    for (int j = 1; j <= kChecksumPoints; ++j) {
        const dcomplex *const value = &u2[5 * j % NZ][3 * j % NY][j % NX];
        sum.re += value->re / kPoints;
        sum.im += value->im / kPoints;
    }
    return sum;
}

static void iterate(void) {
    for (int time = 1; time <= NPB_ITERATIONS; ++time) {
        evolve(time);
        transform_z(u1, u1, kInverse);
        transform_y(u1, u1, kInverse);
        transform_x(u1, u2, kInverse);
        sums[time - 1] = checksum();
    }
}

static bool is_near(double value, double wanted) {
    return fabs((value - wanted) / wanted) <= kTolerance;
}

/* How many sums are the official ones. */
static int verify(void) {
    int good = 0;
    for (int i = 0; i < NPB_ITERATIONS; ++i) {
        printf("checksum %2d: %.12e %.12e\n", i + 1, sums[i].re, sums[i].im);
        if (i >= OFFICIAL_ITERATIONS) continue;
        good += is_near(sums[i].re, official[i].re) && is_near(sums[i].im, official[i].im);
    }
    return good;
}

/* Millions of operations by the benchmark's own count. */
static double operations(void) {
    const double logarithm = log(kPoints);
    return 1e-6 * kPoints *
           (14.8157 + 7.19641 * logarithm + (5.23518 + 7.21113 * logarithm) * NPB_ITERATIONS);
}

int main(int argc, char **argv) {
    bench_arguments(argc, argv, NULL, 0);
    prepare();
    memset(u2, 0, sizeof(u2)); /* the only array not touched by it */

    const double start = bench_seconds();
    prepare();
    iterate();
    const double seconds = bench_seconds() - start;

    printf("NPB FT class %s: %d x %d x %d, %d iterations\n", BENCH_TEXT(NPB_CLASS), NX, NY, NZ,
           NPB_ITERATIONS);
    const int good = verify();
    const struct bench_result result = {
        .program = "npb_ft",
        .size = BENCH_TEXT(NPB_CLASS),
        .bytes = sizeof(u0) + sizeof(u1) + sizeof(u2) + sizeof(indexmap),
        .seconds = seconds,
        .rate = operations() / seconds,
        .unit = "Mop/s",
        .digest = bench_digest(0, sums, sizeof(sums)),
        .wrong = good == OFFICIAL_ITERATIONS && NPB_ITERATIONS == OFFICIAL_ITERATIONS
                     ? NULL
                     : "checksums differ from the official ones"};
    return bench_finish(&result);
}
