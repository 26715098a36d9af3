/* SPDX-License-Identifier: Apache-2.0
 *
 * matv: y = a * x in doubles, the example program of the DLM paper (2009, section 2.2, Fig. 3;
 * times in section 4.2, Table 3, by phase: write a, write x, mul a*x).
 *
 * The figure's elements are their row's number, and pages of equal words cost a compressing swap
 * device nothing.  Here each element is a function of its index, in [1, 2) with all bits random.
 * The result is compared bit by bit with the same sums of rows made again in private memory, and
 * those with sums in extended precision.
 */
#include <math.h>

#include "dlm_bench.h"

#ifndef N
#define N 8192 /* 512 MiB */
#endif

dlm double a[N][N], x[N], y[N];

/* Element `index` of a sequence: the finaliser of splitmix64 as the mantissa of [1, 2). */
static inline double element(uint64_t index) {
    uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z = 0x3ff0000000000000u | ((z ^ (z >> 31)) >> 12);
    double value;
    memcpy(&value, &z, sizeof(value));
    return value;
}

static void write_row(double *row, uint64_t first) {
    for (size_t j = 0; j < N; ++j) row[j] = element(first + j);
}

/* One machine code for the product and its check, so that both round alike. */
__attribute__((noinline)) static double dot(const double *row, const double *vector) {
    double sum = 0;
    for (size_t j = 0; j < N; ++j) sum += row[j] * vector[j];
    return sum;
}

static double dot_exactly(const double *row, const double *vector) {
    long double sum = 0;
    for (size_t j = 0; j < N; ++j) sum += (long double)row[j] * vector[j];
    return (double)sum;
}

static const char *check(void) {
    static double row[N], vector[N];
    write_row(vector, (uint64_t)N * N);
    if (memcmp(vector, x, sizeof(vector)) != 0) return "x is not as it was written";
    for (size_t i = 0; i < N; ++i) {
        write_row(row, (uint64_t)i * N);
        const double expected = dot(row, vector);
        if (memcmp(&expected, &y[i], sizeof(expected)) != 0) return "an element of y is another";
        /* Positive terms: each rounding adds at most one part in 2^53. */
        if (!(fabs(expected / dot_exactly(row, vector) - 1) < N * 0x1p-53)) return "sums differ";
    }
    return NULL;
}

int main(int argc, char **argv) {
    bench_arguments(argc, argv, NULL, 0);
    const double begin = bench_seconds();
    for (size_t i = 0; i < N; ++i) write_row(a[i], (uint64_t)i * N);
    BENCH_BARRIER();
    const double written = bench_seconds();
    write_row(x, (uint64_t)N * N);
    BENCH_BARRIER();
    const double ready = bench_seconds();
    for (size_t i = 0; i < N; ++i) y[i] = dot(a[i], x);
    BENCH_BARRIER();
    const double end = bench_seconds();
    printf("write a %12.6f s\nwrite x %12.6f s\nmul a*x %12.6f s\ntotal   %12.6f s\n",
           written - begin, ready - written, end - ready, end - begin);
    const struct bench_result result = {
        .program = "matv",
        .size = BENCH_TEXT(N),
        .bytes = sizeof(a) + sizeof(x) + sizeof(y),
        .seconds = end - begin,
        .rate = 2.0 * N * N / (end - ready) * 1e-6,
        .unit = "MFLOPS",
        .digest = bench_digest(0, y, sizeof(y)),
        .wrong = check(),
    };
    return bench_finish(&result);
}
