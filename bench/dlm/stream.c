/* SPDX-License-Identifier: Apache-2.0
 *
 * STREAM (J. D. McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance
 * Computers", 1995) as the DLM paper uses it (2009, section 5.1.3, Tables 5 and 6, Figs. 14-16 and
 * 19(b)): Copy, Scale, Add and Triad over three arrays of N doubles, repeated; rates are those of
 * the best repetition after the first.  The paper's N is 100000000, with 8 % of 2.4 GB local.
 *
 * Initial values and the rule of verification are STREAM's: the elements' value by the same
 * recurrence, and for each array a mean relative error of at most 1e-13.
 */
#include "stream_times.h"

#ifndef N
#define N 10000000 /* 240 MB */
#endif

dlm double a[N], b[N], c[N];

static const double scalar = 3.0;
static const struct kernel kernels[KERNELS] = {
    {"Copy", 16}, {"Scale", 16}, {"Add", 24}, {"Triad", 24}};
enum { kTriad = 3 };

__attribute__((noinline)) static void copy(void) {
    for (size_t i = 0; i < N; ++i) c[i] = a[i];
}

__attribute__((noinline)) static void scale(void) {
    for (size_t i = 0; i < N; ++i) b[i] = scalar * c[i];
}

__attribute__((noinline)) static void add(void) {
    for (size_t i = 0; i < N; ++i) c[i] = a[i] + b[i];
}

__attribute__((noinline)) static void triad(void) {
    for (size_t i = 0; i < N; ++i) a[i] = b[i] + scalar * c[i];
}

static void write_initial_values(void) {
    for (size_t i = 0; i < N; ++i) {
        a[i] = 1.0;
        b[i] = 2.0;
        c[i] = 0.0;
    }
    /* STREAM's check of the clock's grain. */
    for (size_t i = 0; i < N; ++i) a[i] = 2.0 * a[i];
}

static void repeat_once(double *seconds) {
    void (*const functions[KERNELS])(void) = {copy, scale, add, triad};
    for (int k = 0; k < KERNELS; ++k) {
        const double begin = bench_seconds();
        functions[k]();
        BENCH_BARRIER();
        seconds[k] = bench_seconds() - begin;
    }
}

/* Also digests the array. */
static double mean_relative_error(const double *array, double expected, uint64_t *digest) {
    const size_t step = 4096;
    long double sum = 0;
    for (size_t at = 0; at < N; at += step) {
        const size_t end = N - at < step ? N : at + step;
        for (size_t i = at; i < end; ++i) sum += fabs(array[i] - expected);
        *digest = bench_digest(*digest, array + at, (end - at) * sizeof(*array));
    }
    return fabs((double)(sum / N) / expected);
}

static const char *check(long repeat, uint64_t *digest) {
    double at = 2.0, bt = 2.0, ct = 0.0;
    for (long r = 0; r < repeat; ++r) {
        ct = at;
        bt = scalar * ct;
        ct = at + bt;
        at = bt + scalar * ct;
    }
    const double most = 1e-13;
    const bool is_a_right = mean_relative_error(a, at, digest) <= most;
    const bool is_b_right = mean_relative_error(b, bt, digest) <= most;
    const bool is_c_right = mean_relative_error(c, ct, digest) <= most;
    return !is_a_right   ? "array a fails STREAM's validation"
           : !is_b_right ? "array b fails STREAM's validation"
           : !is_c_right ? "array c fails STREAM's validation"
                         : NULL;
}

int main(int argc, char **argv) {
    long repeat = 10;
    const struct bench_option options[] = {{"--repeat", &repeat, 2, REPEAT_MOST}};
    bench_arguments(argc, argv, options, 1);
    write_initial_values();
    struct times times;
    begin_times(&times);
    for (long r = 0; r < repeat; ++r) {
        double seconds[KERNELS];
        repeat_once(seconds);
        if (r > 0) add_times(&times, seconds);
    }
    print_times(&times, kernels, N);
    uint64_t digest = 0;
    const char *const wrong = check(repeat, &digest);
    const struct bench_result result = {
        .program = "stream",
        .size = BENCH_TEXT(N),
        .bytes = sizeof(a) + sizeof(b) + sizeof(c),
        .seconds = best_seconds(&times),
        .rate = best_rate(&times, kernels, kTriad, N),
        .unit = "MB/s",
        .digest = digest,
        .wrong = wrong,
    };
    return bench_finish(&result);
}
