/* SPDX-License-Identifier: Apache-2.0
 *
 * The Himeno benchmark (R. Himeno, RIKEN, version 3.0 with static arrays) as the DLM paper uses it
 * (2009, section 5.2.2, Fig. 18, Fig. 19(a); section 6.2, Table 8; size LARGE, 1.9 GB): Jacobi
 * iterations, 19 points, single precision, for a Poisson equation of pressure.  -DSMALL, -DMIDDLE,
 * -DLARGE, -DELARGE, or MIMAX, MJMAX and MKMAX.  The benchmark chooses how often to iterate by the
 * machine's speed; here it is an argument, so that runs can be compared.
 *
 * The benchmark's check is gosa, the sum of squares of the last changes.  The initial pressure is
 * (i / (imax - 1))^2 and stays so at the border, so the first change is the same at all inner
 * points, and what it becomes is known in the sine functions of the grid: gosa is computed from
 * them, in double and without the arrays.  The coefficients have to be as they were, and the
 * pressure symmetric in j and k.  The sum goes through a double for each row: over a whole grid of
 * LARGE one float loses terms.
 */
#include <math.h>

#include "dlm_bench.h"

#if defined(SMALL)
#define SIZE_NAME "S"
#define MIMAX 65
#define MJMAX 65
#define MKMAX 129
#elif defined(LARGE)
#define SIZE_NAME "L"
#define MIMAX 257
#define MJMAX 257
#define MKMAX 513
#elif defined(ELARGE)
#define SIZE_NAME "EL"
#define MIMAX 513
#define MJMAX 513
#define MKMAX 1025
#elif !defined(MIMAX)
#define SIZE_NAME "M"
#define MIMAX 129
#define MJMAX 129
#define MKMAX 257
#else
#define SIZE_NAME BENCH_TEXT(MIMAX) "x" BENCH_TEXT(MJMAX) "x" BENCH_TEXT(MKMAX)
#endif

dlm float p[MIMAX][MJMAX][MKMAX];
dlm float a[4][MIMAX][MJMAX][MKMAX], b[3][MIMAX][MJMAX][MKMAX], c[3][MIMAX][MJMAX][MKMAX];
dlm float bnd[MIMAX][MJMAX][MKMAX];
dlm float wrk1[MIMAX][MJMAX][MKMAX], wrk2[MIMAX][MJMAX][MKMAX];

enum { imax = MIMAX - 1, jmax = MJMAX - 1, kmax = MKMAX - 1 };
static const float omega = 0.8f;
static const float sixth = 1.0f / 6.0f;

static float initial_pressure(int i) { return (float)(i * i) / (float)((imax - 1) * (imax - 1)); }

static void initialise(void) {
    for (int i = 0; i < imax; ++i) {
        for (int j = 0; j < jmax; ++j) {
            for (int k = 0; k < kmax; ++k) {
                for (int n = 0; n < 3; ++n) {
                    a[n][i][j][k] = 1.0f;
                    b[n][i][j][k] = 0.0f;
                    c[n][i][j][k] = 1.0f;
                }
                a[3][i][j][k] = sixth;
                p[i][j][k] = initial_pressure(i);
                wrk1[i][j][k] = 0.0f;
                wrk2[i][j][k] = 0.0f;
                bnd[i][j][k] = 1.0f;
            }
        }
    }
}

/* New values of a row of inner points into wrk2; returns its part of gosa. */
static inline float relax_row(int i, int j) {
    float gosa = 0.0f;
    for (int k = 1; k < kmax - 1; ++k) {
        const float s0 = a[0][i][j][k] * p[i + 1][j][k] + a[1][i][j][k] * p[i][j + 1][k] +
                         a[2][i][j][k] * p[i][j][k + 1] +
                         b[0][i][j][k] * (p[i + 1][j + 1][k] - p[i + 1][j - 1][k] -
                                          p[i - 1][j + 1][k] + p[i - 1][j - 1][k]) +
                         b[1][i][j][k] * (p[i][j + 1][k + 1] - p[i][j - 1][k + 1] -
                                          p[i][j + 1][k - 1] + p[i][j - 1][k - 1]) +
                         b[2][i][j][k] * (p[i + 1][j][k + 1] - p[i - 1][j][k + 1] -
                                          p[i + 1][j][k - 1] + p[i - 1][j][k - 1]) +
                         c[0][i][j][k] * p[i - 1][j][k] + c[1][i][j][k] * p[i][j - 1][k] +
                         c[2][i][j][k] * p[i][j][k - 1] + wrk1[i][j][k];
        const float ss = (s0 * a[3][i][j][k] - p[i][j][k]) * bnd[i][j][k];
        gosa += ss * ss;
        wrk2[i][j][k] = p[i][j][k] + omega * ss;
    }
    return gosa;
}

static double jacobi(long iterations) {
    double gosa = 0;
    for (long n = 0; n < iterations; ++n) {
        gosa = 0;
        for (int i = 1; i < imax - 1; ++i) {
            for (int j = 1; j < jmax - 1; ++j) gosa += relax_row(i, j);
        }
        for (int i = 1; i < imax - 1; ++i) {
            for (int j = 1; j < jmax - 1; ++j) {
                for (int k = 1; k < kmax - 1; ++k) p[i][j][k] = wrk2[i][j][k];
            }
        }
    }
    return gosa;
}

/* Of sin(pi m x / points), for odd m: the square of its part in a vector of ones, and its cosine.
 */
static double mode(int m, int points, double *cosine) {
    const double pi = 3.14159265358979323846;
    const double tangent = tan(pi * m / (2.0 * points));
    *cosine = cos(pi * m / points);
    return 2.0 / points / (tangent * tangent);
}

/* Each iteration multiplies a change by 1 - omega * (1 - mean of the cosines). */
static double expected_gosa(long iterations) {
    const double first = 1.0 / (3.0 * (imax - 1) * (imax - 1));
    const double power = 2.0 * (double)(iterations - 1);
    double sum = 0;
    for (int i = 1; i < imax - 1; i += 2) {
        double cosine_i, cosine_j, cosine_k;
        const double part_i = mode(i, imax - 1, &cosine_i);
        for (int j = 1; j < jmax - 1; j += 2) {
            const double part_ij = part_i * mode(j, jmax - 1, &cosine_j);
            for (int k = 1; k < kmax - 1; k += 2) {
                const double part = part_ij * mode(k, kmax - 1, &cosine_k);
                const double mean = (cosine_i + cosine_j + cosine_k) / 3;
                sum += part * pow(fabs(1 - (double)omega * (1 - mean)), power);
            }
        }
    }
    return first * first * sum;
}

static bool are_coefficients_right(void) {
    size_t wrong = 0;
    for (int i = 0; i < imax; ++i) {
        for (int j = 0; j < jmax; ++j) {
            for (int k = 0; k < kmax; ++k) {
                for (int n = 0; n < 3; ++n) {
                    wrong += a[n][i][j][k] != 1.0f;
                    wrong += b[n][i][j][k] != 0.0f;
                    wrong += c[n][i][j][k] != 1.0f;
                }
                wrong += a[3][i][j][k] != sixth;
                wrong += wrk1[i][j][k] != 0.0f;
                wrong += bnd[i][j][k] != 1.0f;
            }
        }
    }
    return wrong == 0;
}

/* The largest difference between a point and its images in j and k; infinite when the border is not
 * as it was, or the last iteration's values in wrk2 are others. */
static float asymmetry(uint64_t *digest) {
    float largest = 0.0f;
    for (int i = 0; i < imax; ++i) {
        for (int j = 0; j < jmax; ++j) {
            for (int k = 0; k < kmax; ++k) {
                const bool is_border =
                    i == 0 || i == imax - 1 || j == 0 || j == jmax - 1 || k == 0 || k == kmax - 1;
                const float value = p[i][j][k];
                if (value != (is_border ? initial_pressure(i) : wrk2[i][j][k])) return HUGE_VALF;
                const float in_j = fabsf(value - p[i][jmax - 1 - j][k]);
                const float in_k = fabsf(value - p[i][j][kmax - 1 - k]);
                largest = fmaxf(largest, fmaxf(in_j, in_k));
            }
        }
        *digest = bench_digest(*digest, p[i], sizeof(p[i]));
    }
    return largest;
}

static const char *check(long iterations, double gosa, uint64_t *digest) {
    const double first = 1.0 / (3.0 * (imax - 1) * (imax - 1));
    const double expected = expected_gosa(iterations);
    const float largest = asymmetry(digest);
    *digest = bench_digest(*digest, &gosa, sizeof(gosa));
    printf("gosa of the sine functions: %e\nasymmetry: %e\n", expected, (double)largest);
    /* Values up to 1 in single precision: a change is exact to about 2^-24, and its square to twice
     * as much; a point is hardly more than a few roundings from its images. */
    if (!(fabs(gosa / expected - 1) <= 0x1p-23 / first)) return "gosa is another";
    if (!((double)largest <= 0x1p-21 * (1 + (double)iterations / 100)))
        return "the pressure is not symmetric, or its border has changed";
    if (!are_coefficients_right()) return "a coefficient has changed";
    return NULL;
}

int main(int argc, char **argv) {
    long iterations = 10;
    const struct bench_option options[] = {{"--iterations", &iterations, 1, 1000}};
    bench_arguments(argc, argv, options, 1);
    initialise();
    BENCH_BARRIER();
    const double begin = bench_seconds();
    const double gosa = jacobi(iterations);
    BENCH_BARRIER();
    const double seconds = bench_seconds() - begin;
    const double operations = 34.0 * (imax - 2) * (jmax - 2) * (kmax - 2) * (double)iterations;
    printf("Loop executed for %ld times\nGosa : %e\nMFLOPS measured : %f\tcpu : %f\n", iterations,
           gosa, operations / seconds * 1e-6, seconds);
    uint64_t digest = 0;
    const char *const wrong = check(iterations, gosa, &digest);
    const struct bench_result result = {
        .program = "himeno",
        .size = SIZE_NAME,
        .bytes = sizeof(p) + sizeof(a) + sizeof(b) + sizeof(c) + sizeof(bnd) + sizeof(wrk1) +
                 sizeof(wrk2),
        .seconds = seconds,
        .rate = operations / seconds * 1e-6,
        .unit = "MFLOPS",
        .digest = digest,
        .wrong = wrong,
    };
    return bench_finish(&result);
}
