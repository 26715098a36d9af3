// SPDX-License-Identifier: Apache-2.0
//
// OpenMP: a histogram, a sort by counting and prefix sums over arrays that all threads share.
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kBuckets = 4096 };

static uint64_t mix(uint64_t x) {
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185u;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44du;
    return x ^ x >> 33;
}

// Places of the first value of each bucket, and from there on of each thread's.
static void count(const uint64_t* values, size_t n, size_t* places, int threads) {
#pragma omp parallel num_threads(threads)
    {
        size_t* mine = places + (size_t)omp_get_thread_num() * kBuckets;
#pragma omp for schedule(static)
        for (size_t i = 0; i < n; i++) mine[values[i] % kBuckets]++;
    }
    size_t sum = 0;
    for (int bucket = 0; bucket < kBuckets; bucket++) {
        for (int thread = 0; thread < threads; thread++) {
            size_t* place = &places[(size_t)thread * kBuckets + (size_t)bucket];
            const size_t counted = *place;
            *place = sum;
            sum += counted;
        }
    }
}

int main(int argc, char** argv) {
    const size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
    const int threads = 2;
    uint64_t* values = malloc(n * sizeof *values);
    uint64_t* sorted = malloc(n * sizeof *sorted);
    size_t* places = calloc((size_t)threads * kBuckets, sizeof *places);
    if (values == NULL || sorted == NULL || places == NULL) return 1;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t i = 0; i < n; i++) values[i] = mix(i);
    count(values, n, places, threads);
#pragma omp parallel num_threads(threads)
    {
        size_t* mine = places + (size_t)omp_get_thread_num() * kBuckets;
#pragma omp for schedule(static)
        for (size_t i = 0; i < n; i++) sorted[mine[values[i] % kBuckets]++] = values[i];
    }
    uint64_t sum = 0, check = 0, wrong = 0;
#pragma omp parallel for schedule(dynamic, 65536) num_threads(threads) \
    reduction(+ : sum, check, wrong)
    for (size_t i = 0; i < n; i++) {
        sum += values[i];
        check += sorted[i] * (i | 1);
        wrong += i > 0 && sorted[i] % kBuckets < sorted[i - 1] % kBuckets;
    }
    printf("%llu %llu %llu\n", (unsigned long long)sum, (unsigned long long)check,
           (unsigned long long)wrong);
    free(values);
    free(sorted);
    free(places);
    return wrong != 0;
}
