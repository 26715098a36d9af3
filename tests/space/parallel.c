/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenMP: loops, reductions, variables of each thread, nested regions.  Prints "right". */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int calls;
#pragma omp threadprivate(calls)

int main(void) {
    enum { COUNT = 1 << 20 };
    omp_set_num_threads(4);
    omp_set_max_active_levels(2);
    double *values = malloc(COUNT * sizeof *values);
    for (int round = 0; round < 20; round++) {
        double sum = 0;
#pragma omp parallel for schedule(dynamic, 1000)
        for (int i = 0; i < COUNT; i++) values[i] = i + round;
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < COUNT; i++) sum += values[i];
        if (sum != (double)COUNT * (COUNT - 1) / 2 + (double)round * COUNT) {
            return puts("the sum is wrong"), 1;
        }
    }
    int all = 0;
#pragma omp parallel reduction(+ : all)
    {
        for (int i = 0; i < 100; i++) calls++;
#pragma omp parallel num_threads(2)
        {
            char *piece = malloc(1 << 18);
            piece[omp_get_thread_num()] = 1;
            free(piece);
        }
        all += calls;
    }
    if (all != 400) return puts("variables of threads are mixed up"), 1;
    puts("right");
    return 0;
}
