/* SPDX-License-Identifier: Apache-2.0
 *
 * What stream and stream2 share: times of kernels by repetition, the best of all but the first, and
 * the table that STREAM prints of them.
 */
#ifndef HANARE_BENCH_STREAM_TIMES_H
#define HANARE_BENCH_STREAM_TIMES_H

#include <math.h>

#include "dlm_bench.h"

#define KERNELS 4
/* STREAM's values grow fifteenfold each time; double has room for 260. */
#define REPEAT_MOST 200

struct kernel {
    const char *name;
    double bytes_per_element; /* read and written by the program, as STREAM counts */
};

struct times {
    double best[KERNELS], sum[KERNELS], worst[KERNELS];
    int counted;
};

static inline void begin_times(struct times *times) {
    memset(times, 0, sizeof(*times));
    for (int k = 0; k < KERNELS; ++k) times->best[k] = HUGE_VAL;
}

/* Not called for the first repetition. */
static inline void add_times(struct times *times, const double *seconds) {
    ++times->counted;
    for (int k = 0; k < KERNELS; ++k) {
        times->best[k] = fmin(times->best[k], seconds[k]);
        times->worst[k] = fmax(times->worst[k], seconds[k]);
        times->sum[k] += seconds[k];
    }
}

static inline double best_rate(const struct times *times, const struct kernel *kernels, int k,
                               size_t elements) {
    return kernels[k].bytes_per_element * (double)elements / times->best[k] * 1e-6;
}

static inline void print_times(const struct times *times, const struct kernel *kernels,
                               size_t elements) {
    printf("%zu elements per array, best of %d\n", elements, times->counted);
    printf("Function    Best Rate MB/s  Avg time     Min time     Max time\n");
    for (int k = 0; k < KERNELS; ++k) {
        printf("%-12s%14.1f  %11.6f  %11.6f  %11.6f\n", kernels[k].name,
               best_rate(times, kernels, k, elements), times->sum[k] / times->counted,
               times->best[k], times->worst[k]);
    }
}

static inline double best_seconds(const struct times *times) {
    double seconds = 0;
    for (int k = 0; k < KERNELS; ++k) seconds += times->best[k];
    return seconds;
}

#endif
