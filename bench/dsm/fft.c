// SPDX-License-Identifier: Apache-2.0
//
// 3D-FFT: the passes over a process's planes, and the verification: the checksums of all iterations
// are the official ones.
#include "fft.h"

#include <math.h>

#include "npb_random.h"

extern const struct fft_class fft_class_S, fft_class_W, fft_class_A, fft_class_B;

enum { kChecksumPoints = 1024 };
static const uint64_t kSeed = 314159265;
static const double kAlpha = 1e-6;
static const double kTolerance = 1e-12;  // the benchmark's

static size_t points_z(const struct fft *fft) {
    return (size_t)(fft->z.end - fft->z.begin) * fft_plane_z(fft);
}

static size_t points_y(const struct fft *fft) {
    return (size_t)(fft->y.end - fft->y.begin) * fft_plane_y(fft);
}

static double all_points(const struct fft *fft) {
    return (double)fft->class->nx * fft->class->ny * fft->class->nz;
}

void fft_fill(const struct fft *fft, struct share planes, dcomplex *to) {
    const uint64_t numbers = 2 * fft_plane_z(fft);
    uint64_t seed = npb_random_jump(kSeed, numbers * (uint64_t)planes.begin);
    npb_random_fill(&seed, numbers * (uint64_t)(planes.end - planes.begin), &to->re);
}

// Wave numbers are from -size/2 to size/2 - 1.
static int square_of_wave_number(int index, int size) {
    const int number = index < size / 2 ? index : index - size;
    return number * number;
}

static void prepare_factors(struct fft *fft) {
    const struct fft_class *const class = fft->class;
    const double pi = acos(-1.0);
    double *factor = fft->factors;
    for (long y = fft->y.begin; y < fft->y.end; ++y) {
        for (int z = 0; z < class->nz; ++z) {
            const int zy =
                square_of_wave_number(z, class->nz) + square_of_wave_number((int)y, class->ny);
            for (int x = 0; x < class->nx; ++x) {
                const int squares = zy + square_of_wave_number(x, class->nx);
                *factor++ = exp(-4.0 * kAlpha * pi * pi * squares);
            }
        }
    }
}

static void transform_x(const struct fft *fft, dcomplex *values, enum ft_direction direction) {
    const int nx = fft->class->nx;
    const size_t count = points_z(fft);
    for (size_t at = 0; at < count; at += (size_t)(kLines * nx)) {
        ft_transform_along(values + at, values + at, nx, (size_t)nx, direction);
    }
}

static void transform_planes(dcomplex *values, size_t count, int length, int nx,
                             enum ft_direction direction) {
    const size_t plane = (size_t)length * (size_t)nx;
    for (size_t at = 0; at < count; at += plane) {
        for (int x = 0; x < nx; x += kLines) {
            dcomplex *const first = values + at + x;
            ft_transform_across(first, first, length, (size_t)nx, direction);
        }
    }
}

static void transform_y(const struct fft *fft, dcomplex *values, enum ft_direction direction) {
    transform_planes(values, points_z(fft), fft->class->ny, fft->class->nx, direction);
}

static void transform_z(const struct fft *fft, dcomplex *values, enum ft_direction direction) {
    transform_planes(values, points_y(fft), fft->class->nz, fft->class->nx, direction);
}

// From the time of the last iteration to that of this one, and into by_y.
static void evolve(struct fft *fft) {
    const size_t count = points_y(fft);
    for (size_t at = 0; at < count; ++at) {
        fft->transformed[at].re *= fft->factors[at];
        fft->transformed[at].im *= fft->factors[at];
        fft->by_y[at] = fft->transformed[at];
    }
}

// The process's part of it.
static dcomplex checksum(const struct fft *fft) {
    const struct fft_class *const class = fft->class;
    dcomplex sum = {0, 0};
    for (int j = 1; j <= kChecksumPoints; ++j) {
        const int z = 5 * j % class->nz;
        if (z < fft->z.begin || z >= fft->z.end) continue;
        const size_t in_plane = (size_t)(3 * j % class->ny * class->nx + j % class->nx);
        const size_t plane = (size_t)(z - fft->z.begin) * fft_plane_z(fft);
        sum.re += fft->values[plane + in_plane].re / all_points(fft);
        sum.im += fft->values[plane + in_plane].im / all_points(fft);
    }
    return sum;
}

static void solve(struct fft *fft) {
    transform_x(fft, fft->by_z, kForward);
    transform_y(fft, fft->by_z, kForward);
    fft_to_y(fft);
    transform_z(fft, fft->by_y, kForward);
    memcpy(fft->transformed, fft->by_y, points_y(fft) * sizeof(dcomplex));
    for (int i = 0; i < fft->class->iterations; ++i) {
        evolve(fft);
        transform_z(fft, fft->by_y, kInverse);
        fft_to_z(fft);
        transform_y(fft, fft->values, kInverse);
        transform_x(fft, fft->values, kInverse);
        fft->sums[i] = checksum(fft);
    }
    fft_sum(fft, fft->class->iterations);
}

static bool is_near(double value, double wanted) {
    return fabs((value - wanted) / wanted) <= kTolerance;
}

static const char *verify(const struct fft *fft) {
    for (int i = 0; i < fft->class->iterations; ++i) {
        const dcomplex wanted = fft->class->official[i];
        const bool good =
            is_near(fft->sums[i].re, wanted.re) && is_near(fft->sums[i].im, wanted.im);
        if (!good) return "checksums differ from the official ones";
    }
    return NULL;
}

static const struct fft_class *class_of(long log2_points) {
    const struct fft_class *const classes[] = {&fft_class_S, &fft_class_W, &fft_class_A,
                                               &fft_class_B};
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); ++i) {
        const struct fft_class *const class = classes[i];
        if ((long)class->nx * class->ny * class->nz == 1L << log2_points) return class;
    }
    return NULL;
}

int main(int argc, char **argv) {
    long log2_points = 18;
    const struct bench_option options[] = {{"--log2", &log2_points, 18, 25}};
    dsm_begin(argc, argv, options, sizeof(options) / sizeof(options[0]));
    struct fft fft = {.class = class_of(log2_points)};
    dsm_require(fft.class != NULL, "--log2 is 18, 19, 23 or 25 (class S, W, A, B)");
    dsm_require(fft.class->nz >= (long)form_processes,
                "at most as many processes as planes (S: 64, W: 32)");
    fft.z = own_share(fft.class->nz);
    fft.y = own_share(fft.class->ny);
    fft.transformed = dsm_allocate(points_y(&fft), sizeof(dcomplex));
    fft.factors = dsm_allocate(points_y(&fft), sizeof(double));
    ft_prepare();
    fft_allocate(&fft);
    prepare_factors(&fft);

    const double start = dsm_start();
    solve(&fft);
    const double seconds = dsm_stop(start);

    char details[64];
    snprintf(details, sizeof(details), "class=%c", fft.class->letter);
    struct dsm_result result = {"fft", seconds, details, 0, NULL};
    uint64_t digest = 0;
    for (size_t at = 0; at < points_z(&fft); ++at) {
        const uint64_t index = (uint64_t)fft.z.begin * fft_plane_z(&fft) + at;
        digest += dsm_mix(2 * index, dsm_bits(fft.values[at].re));
        digest += dsm_mix(2 * index + 1, dsm_bits(fft.values[at].im));
    }
    result.digest = form_sum(digest);
    if (dsm_spoil) fft.sums[0].re *= 1.0001;
    if (form_process == 0) result.wrong = verify(&fft);
    free(fft.factors);
    free(fft.transformed);
    dsm_finish(&result);
}
