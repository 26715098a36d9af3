/* SPDX-License-Identifier: Apache-2.0
 *
 * NPB CG: estimates the greatest eigenvalue of a random sparse matrix by the inverse power method
 * (RNR-94-007); every iteration solves a system with 25 steps of the conjugate
 * gradient method.  The estimate of the last one must be the official one.
 */
#include <math.h>

#include "cg_matrix.h"
#include "dlm_bench.h"

#ifndef NPB_ITERATIONS
#define NPB_ITERATIONS OFFICIAL_ITERATIONS
#endif

enum { kSteps = 25 };
static const double kTolerance = 1e-10;

/* The system is (matrix) z = x; r is what is left of it, p the direction of a step, q and w
 * products with the matrix. */
dlm double x[NA], z[NA], p[NA], q[NA], r[NA], w[NA];

/* Four sums a row, since additions to one would wait for each other. */
static void multiply(const double *restrict vector, double *restrict product) {
    for (int row = 0; row < NA; ++row) {
        const int end = rowstr[row + 1];
        double sum[4] = {0, 0, 0, 0};
        int at = rowstr[row];
        for (; at + 4 <= end; at += 4) {
            for (int i = 0; i < 4; ++i) sum[i] += a[at + i] * vector[colidx[at + i]];
        }
        for (; at < end; ++at) sum[0] += a[at] * vector[colidx[at]];
        product[row] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}

static double dot(const double *left, const double *right) {
    double sum = 0;
    for (int i = 0; i < NA; ++i) sum += left[i] * right[i];
    return sum;
}

/* Solves into z; returns the norm of x - (matrix) z. */
static double solve(void) {
    for (int i = 0; i < NA; ++i) {
        z[i] = 0;
        r[i] = p[i] = x[i];
    }
    double rho = dot(r, r);
    for (int step = 0; step < kSteps; ++step) {
        multiply(p, q);
        const double alpha = rho / dot(p, q);
        for (int i = 0; i < NA; ++i) {
            z[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        const double before = rho;
        rho = dot(r, r);
        const double beta = rho / before;
        for (int i = 0; i < NA; ++i) p[i] = r[i] + beta * p[i];
    }
    multiply(z, w);
    double sum = 0;
    for (int i = 0; i < NA; ++i) sum += (x[i] - w[i]) * (x[i] - w[i]);
    return sqrt(sum);
}

/* One iteration of the power method; returns its estimate. */
static double iterate(double *residual) {
    *residual = solve();
    const double zeta = SHIFT + 1.0 / dot(x, z);
    const double scale = 1.0 / sqrt(dot(z, z));
    for (int i = 0; i < NA; ++i) x[i] = scale * z[i];
    return zeta;
}

static void reset(void) {
    for (int i = 0; i < NA; ++i) x[i] = 1;
}

/* Millions of operations by the benchmark's own count. */
static double operations(void) {
    const double products = NONZER * (NONZER + 1);
    return 1e-6 * 2 * NPB_ITERATIONS * NA * (3 + products + kSteps * (5 + products) + 3);
}

int main(int argc, char **argv) {
    bench_arguments(argc, argv, NULL, 0);
    double residual[NPB_ITERATIONS], zeta[NPB_ITERATIONS];
    cg_make_matrix();
    reset();
    (void)iterate(&residual[0]);
    reset();

    const double start = bench_seconds();
    for (int i = 0; i < NPB_ITERATIONS; ++i) zeta[i] = iterate(&residual[i]);
    const double seconds = bench_seconds() - start;

    printf("NPB CG class %s: %d rows, %d elements, %d iterations\n", BENCH_TEXT(NPB_CLASS), NA,
           rowstr[NA], NPB_ITERATIONS);
    for (int i = 0; i < NPB_ITERATIONS; ++i) {
        printf("iteration %2d: zeta %.13f residual %.6e\n", i + 1, zeta[i], residual[i]);
    }
    /* Later estimates differ by less than the tolerance, so the number of them counts as well. */
    const bool good = fabs(zeta[NPB_ITERATIONS - 1] - OFFICIAL_ZETA) <= kTolerance &&
                      NPB_ITERATIONS == OFFICIAL_ITERATIONS;
    const struct bench_result result = {.program = "npb_cg",
                                        .size = BENCH_TEXT(NPB_CLASS),
                                        .bytes = cg_matrix_bytes + sizeof(x) + sizeof(z) +
                                                 sizeof(p) + sizeof(q) + sizeof(r) + sizeof(w),
                                        .seconds = seconds,
                                        .rate = operations() / seconds,
                                        .unit = "Mop/s",
                                        .digest = bench_digest(0, zeta, sizeof(zeta)),
                                        .wrong = good ? NULL : "zeta is not the official one"};
    return bench_finish(&result);
}
