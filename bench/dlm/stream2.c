/* SPDX-License-Identifier: Apache-2.0
 *
 * STREAM2 (J. D. McCalpin, 1999) as the DLM paper has it in C (2009, section 5.1.3, Table 5,
 * Fig. 16(c) and (d)): FILL, COPY, DAXPY and SUM over two arrays of N doubles, in STREAM's frame:
 * repeated, and rates are those of the best repetition after the first.  --halvings H measures
 * arrays of N / 2^H, ..., N / 2 and N elements, as STREAM2 goes through sizes; the result is that
 * of the largest.  The paper's N is 100000000.
 *
 * STREAM2 publishes no rule of verification.  Elements of b are multiples of 2^-20 from [1, 2), a
 * function of their index.  All that follows is exact in double, so a has to have them four times
 * as large, and SUM has to be a sum of integers.
 */
#include "stream_times.h"

#ifndef N
#define N 10000000 /* 160 MB */
#endif

dlm double a[N], b[N];

static const double scalar = 3.0;
static const struct kernel kernels[KERNELS] = {
    {"FILL", 8}, {"COPY", 16}, {"DAXPY", 24}, {"SUM", 8}};
enum { kFill, kCopy, kDaxpy, kSum };
static double sum;

__attribute__((noinline)) static void fill(size_t count) {
    for (size_t i = 0; i < count; ++i) a[i] = scalar;
}

__attribute__((noinline)) static void copy(size_t count) {
    for (size_t i = 0; i < count; ++i) a[i] = b[i];
}

__attribute__((noinline)) static void daxpy(size_t count) {
    for (size_t i = 0; i < count; ++i) a[i] = a[i] + scalar * b[i];
}

__attribute__((noinline)) static void sum_up(size_t count) {
    double total = 0;
    for (size_t i = 0; i < count; ++i) total += a[i];
    sum = total;
}

/* b's element in units of 2^-20. */
static uint64_t units(size_t index) {
    return (1u << 20) + (uint32_t)((index + 1) * 0x9e3779b97f4a7c15u >> 44);
}

static void repeat_once(size_t count, double *seconds) {
    void (*const functions[KERNELS])(size_t) = {fill, copy, daxpy, sum_up};
    for (int k = 0; k < KERNELS; ++k) {
        const double begin = bench_seconds();
        functions[k](count);
        BENCH_BARRIER();
        seconds[k] = bench_seconds() - begin;
    }
}

static const char *check(size_t count, uint64_t *digest) {
    const size_t step = 4096;
    uint64_t total = 0;
    bool is_a_right = true, is_b_right = true;
    for (size_t at = 0; at < count; at += step) {
        const size_t end = count - at < step ? count : at + step;
        for (size_t i = at; i < end; ++i) {
            total += 4 * units(i);
            is_a_right &= a[i] == (double)(4 * units(i)) * 0x1p-20;
            is_b_right &= b[i] == (double)units(i) * 0x1p-20;
        }
        *digest = bench_digest(*digest, a + at, (end - at) * sizeof(*a));
        *digest = bench_digest(*digest, b + at, (end - at) * sizeof(*b));
    }
    *digest = bench_digest(*digest, &sum, sizeof(sum));
    return !is_b_right                      ? "an element of b is not as it was written"
           : !is_a_right                    ? "an element of a is another"
           : sum != (double)total * 0x1p-20 ? "the sum is another"
                                            : NULL;
}

int main(int argc, char **argv) {
    long repeat = 10, halvings = 0;
    const struct bench_option options[] = {{"--repeat", &repeat, 2, REPEAT_MOST},
                                           {"--halvings", &halvings, 0, 30}};
    bench_arguments(argc, argv, options, 2);
    for (size_t i = 0; i < N; ++i) {
        a[i] = 1.0;
        b[i] = (double)units(i) * 0x1p-20;
    }
    struct times times;
    uint64_t digest = 0;
    const char *wrong = NULL;
    for (long h = halvings; h >= 0; --h) {
        const size_t count = N >> h;
        if (count == 0) continue;
        begin_times(&times);
        for (long r = 0; r < repeat; ++r) {
            double seconds[KERNELS];
            repeat_once(count, seconds);
            if (r > 0) add_times(&times, seconds);
        }
        print_times(&times, kernels, count);
        const char *const now = check(count, &digest);
        if (wrong == NULL) wrong = now;
    }
    const struct bench_result result = {
        .program = "stream2",
        .size = BENCH_TEXT(N),
        .bytes = sizeof(a) + sizeof(b),
        .seconds = best_seconds(&times),
        .rate = best_rate(&times, kernels, kDaxpy, N),
        .unit = "MB/s",
        .digest = digest,
        .wrong = wrong,
    };
    return bench_finish(&result);
}
