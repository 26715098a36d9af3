// SPDX-License-Identifier: Apache-2.0
//
// OpenMP: numbers sorted by counting, one digit at a time, in arrays that all threads share.
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kDigitBits = 12, kBuckets = 1 << kDigitBits, kDigits = 5, kThreads = 2 };

static uint64_t mix(uint64_t x) {
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185u;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44du;
    return x ^ x >> 33;
}

static size_t digit(uint64_t value, int number) {
    return (size_t)(value >> (number * kDigitBits)) % kBuckets;
}

// Where in the sorted array each thread's first value with each digit belongs.
static void count(const uint64_t* values, size_t n, int number, size_t* places) {
    memset(places, 0, sizeof *places * kBuckets * kThreads);
#pragma omp parallel num_threads(kThreads)
    {
        size_t* mine = places + (size_t)omp_get_thread_num() * kBuckets;
#pragma omp for schedule(static)
        for (size_t i = 0; i < n; i++) mine[digit(values[i], number)]++;
    }
    size_t sum = 0;
    for (size_t bucket = 0; bucket < kBuckets; bucket++) {
        for (size_t thread = 0; thread < kThreads; thread++) {
            const size_t counted = places[thread * kBuckets + bucket];
            places[thread * kBuckets + bucket] = sum;
            sum += counted;
        }
    }
}

static void sort_by(const uint64_t* from, uint64_t* to, size_t n, int number, size_t* places) {
    count(from, n, number, places);
#pragma omp parallel num_threads(kThreads)
    {
        size_t* mine = places + (size_t)omp_get_thread_num() * kBuckets;
#pragma omp for schedule(static)
        for (size_t i = 0; i < n; i++) to[mine[digit(from[i], number)]++] = from[i];
    }
}

int main(int argc, char** argv) {
    const size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
    uint64_t* values = malloc(n * sizeof *values);
    uint64_t* other = malloc(n * sizeof *other);
    size_t* places = malloc(sizeof *places * kBuckets * kThreads);
    if (values == NULL || other == NULL || places == NULL) return 1;
#pragma omp parallel for schedule(static) num_threads(kThreads)
    for (size_t i = 0; i < n; i++) values[i] = mix(i) >> (64 - kDigits * kDigitBits);
    for (int number = 0; number < kDigits; number++) {
        sort_by(values, other, n, number, places);
        uint64_t* sorted = other;
        other = values;
        values = sorted;
    }
    uint64_t check = 0, wrong = 0;
#pragma omp parallel for schedule(dynamic, 65536) num_threads(kThreads) reduction(+ : check, wrong)
    for (size_t i = 0; i < n; i++) {
        check += values[i] * (i | 1);
        wrong += i > 0 && values[i] < values[i - 1];
    }
    printf("%llu %llu\n", (unsigned long long)check, (unsigned long long)wrong);
    free(values);
    free(other);
    free(places);
    return wrong != 0;
}
