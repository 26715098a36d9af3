// SPDX-License-Identifier: Apache-2.0
//
// What the primitives of shared memory cost, one line for each, in task 0; two tasks at least:
//
//     hanare launch -n 2 -- primitives           # HANARE_DSM_SHARED=off: as between machines
//
// cold: blocks that another task has written, in random order; sequential: the same in order, all
// of it; barrier; lock_again: a lock that is here; lock_alternates: a lock that two tasks take in
// turns, and a word under it; migratory: sections of two tasks in turns under one lock, each of
// which writes to eight blocks, and what hands the turn over; stencil: an iteration in which each
// task writes its rows of one grid and reads one row of each neighbour's in the other, with what it
// cost in faults and messages once it is in its stride.
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hanare/dsm.h"

enum { kBlockBytes = 4096, kWordsPerBlock = kBlockBytes / 8 };
enum { kColdBlocks = 4096, kColdStride = 16, kSequentialBytes = 256 << 20 };
enum { kBarriers = 2000, kAgain = 1000000, kTurns = 2000 };
enum { kSections = 1000, kMigrants = 8, kMigrantStride = 16 };
enum { kRowBlocks = 4, kRows = 64, kIterations = 200, kWarm = 100 };

static hanare_dsm *dsm;
static uint32_t rank;
static uint32_t size;

static void must(hanare_status status, const char *what) {
    if (status == HANARE_STATUS_OK) return;
    char text[300];
    hanare_last_error(text, sizeof text);
    fprintf(stderr, "primitives: %s: %s\n", what, text);
    exit(1);
}

static void meet(void) { must(hanare_dsm_barrier(dsm, 1), "barrier"); }

static double now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static uint64_t *share(size_t bytes) {
    static void *address;
    if (rank == 0) {
        must(hanare_dsm_allocate(dsm, bytes, &address), "allocate");
        must(hanare_dsm_distribute(dsm, &address, sizeof address), "distribute");
    }
    meet();
    void *const shared = address;
    meet();
    return shared;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const char *name, double *us, int count) {
    qsort(us, (size_t)count, sizeof *us, compare);
    if (rank == 0) {
        printf("name=%s median_us=%.3f p10_us=%.3f p99_us=%.3f\n", name, us[count / 2],
               us[count / 10], us[count - 1 - count / 100]);
    }
}

static double us_of[kColdBlocks];

// Every 16th block, so that none comes with another one.
static void measure_cold(void) {
    uint64_t *const memory = share((size_t)kColdBlocks * kColdStride * kBlockBytes);
    for (size_t i = 0; rank == 1 && i < (size_t)kColdBlocks * kColdStride; ++i) {
        memory[i * kWordsPerBlock] = i + 1;
    }
    meet();
    for (uint32_t i = 0; rank == 0 && i < kColdBlocks; ++i) {
        const size_t block = (size_t)(i * 1597 % kColdBlocks) * kColdStride;
        const volatile uint64_t *const word = memory + block * kWordsPerBlock;
        const double begin = now_us();
        const uint64_t value = *word;
        us_of[i] = now_us() - begin;
        if (value != block + 1) must(HANARE_STATUS_CORRUPT, "cold block");
    }
    print("cold", us_of, kColdBlocks);
    meet();
}

static void measure_sequential(void) {
    uint64_t *const memory = share(kSequentialBytes);
    const size_t words = kSequentialBytes / sizeof *memory;
    for (size_t i = 0; rank == 1 && i < words; ++i) memory[i] = i;
    meet();
    if (rank == 0) {
        uint64_t sum = 0;
        const double begin = now_us();
        for (size_t i = 0; i < words; ++i) sum += memory[i];
        const double us = now_us() - begin;
        if (sum != (uint64_t)words * (words - 1) / 2) must(HANARE_STATUS_CORRUPT, "sequential");
        printf("name=sequential gb_per_s=%.2f\n", kSequentialBytes / us / 1e3);
    }
    meet();
}

static void measure_barrier(void) {
    for (int i = 0; i < kBarriers; ++i) {
        const double begin = now_us();
        meet();
        us_of[i] = now_us() - begin;
    }
    print("barrier", us_of, kBarriers);
}

static void measure_locks(void) {
    volatile uint64_t *const turn = share(kBlockBytes);
    if (rank == 0) {
        const double begin = now_us();
        for (int i = 0; i < kAgain; ++i) {
            must(hanare_dsm_lock(dsm, 5), "lock");
            must(hanare_dsm_unlock(dsm, 5), "unlock");
        }
        printf("name=lock_again ns=%.1f\n", (now_us() - begin) * 1e3 / kAgain);
    }
    meet();
    const double begin = now_us();
    for (uint64_t seen = 0; rank < 2 && seen < kTurns;) {
        must(hanare_dsm_lock(dsm, 6), "lock");
        seen = *turn;
        if (seen % 2 == rank && seen < kTurns) *turn = seen + 1;
        must(hanare_dsm_unlock(dsm, 6), "unlock");
    }
    if (rank == 0) printf("name=lock_alternates us=%.3f\n", (now_us() - begin) / kTurns);
    meet();
}

// By semaphores, whose numbers are those of the tasks: else who has the lock may take it again.
static void measure_migratory(void) {
    uint64_t *const memory = share((size_t)kMigrants * kMigrantStride * kBlockBytes);
    hanare_dsm_counters before = {.struct_size = sizeof before};
    hanare_dsm_counters after = {.struct_size = sizeof after};
    for (uint32_t task = 0; rank == 0 && task < 2; ++task) {
        must(hanare_dsm_semaphore_make(dsm, task, 1 - task), "semaphore");
    }
    meet();
    must(hanare_dsm_count(dsm, &before), "count");
    const double begin = now_us();
    for (int i = 0; rank < 2 && i < kSections; ++i) {
        must(hanare_dsm_semaphore_wait(dsm, rank), "semaphore");
        must(hanare_dsm_lock(dsm, 7), "lock");
        for (size_t m = 0; m < kMigrants; ++m) {
            memory[m * kMigrantStride * kWordsPerBlock] += m + 1;
        }
        must(hanare_dsm_unlock(dsm, 7), "unlock");
        must(hanare_dsm_semaphore_post(dsm, 1 - rank), "semaphore");
    }
    const double us = now_us() - begin;
    must(hanare_dsm_count(dsm, &after), "count");
    meet();
    for (size_t m = 0; m < kMigrants; ++m) {
        if (memory[m * kMigrantStride * kWordsPerBlock] != 2 * kSections * (m + 1)) {
            must(HANARE_STATUS_CORRUPT, "migratory");
        }
    }
    if (rank == 0) {
        printf("name=migratory us=%.1f remote_locks=%.2f read_faults=%.2f fetched=%.2f\n",
               us / (2 * kSections), (double)(after.remote_locks - before.remote_locks) / kSections,
               (double)(after.read_faults - before.read_faults) / kSections,
               (double)(after.fetched_blocks - before.fetched_blocks) / kSections);
    }
    meet();
}

static void measure_stencil(void) {
    const size_t row = (size_t)kRowBlocks * kWordsPerBlock;
    uint64_t *const memory = share(2 * size * kRows * row * sizeof *memory);
    uint64_t *const grids[2] = {memory, memory + size * kRows * row};
    const size_t begin = rank * kRows, end = begin + kRows;
    for (int i = 0; i < 2; ++i) memset(grids[i] + begin * row, 0, kRows * row * sizeof *memory);
    meet();
    hanare_dsm_counters before = {.struct_size = sizeof before};
    hanare_dsm_counters after = {.struct_size = sizeof after};
    double begun = 0;
    for (uint64_t i = 0; i < kIterations; ++i) {
        const uint64_t *const now = grids[i % 2];
        uint64_t *const next = grids[1 - i % 2];
        if (i == kWarm) {
            must(hanare_dsm_count(dsm, &before), "count");
            begun = now_us();
        }
        for (size_t r = begin; r < end; ++r) {
            for (size_t c = 0; c < row; ++c) {
                const uint64_t above = r > 0 ? now[(r - 1) * row + c] : i;
                const uint64_t below = r + 1 < size * kRows ? now[(r + 1) * row + c] : i;
                if (above != i || below != i) must(HANARE_STATUS_CORRUPT, "stencil");
                next[r * row + c] = i + 1;
            }
        }
        meet();
    }
    must(hanare_dsm_count(dsm, &after), "count");
    const double count = kIterations - kWarm;
    if (rank != 0) return;
    printf(
        "name=stencil us=%.1f read_faults=%.2f write_faults=%.2f fetched=%.2f messages=%.2f "
        "bytes=%.0f barrier_messages=%.2f barrier_bytes=%.0f\n",
        (now_us() - begun) / count, (double)(after.read_faults - before.read_faults) / count,
        (double)(after.write_faults - before.write_faults) / count,
        (double)(after.fetched_blocks - before.fetched_blocks) / count,
        (double)(after.messages - before.messages) / count,
        (double)(after.message_bytes - before.message_bytes) / count,
        (double)(after.barrier_messages - before.barrier_messages) / count,
        (double)(after.barrier_bytes - before.barrier_bytes) / count);
}

int main(void) {
    must(hanare_dsm_start(NULL, &dsm), "start");
    must(hanare_dsm_rank(dsm, &rank), "rank");
    must(hanare_dsm_size(dsm, &size), "size");
    if (size < 2) must(HANARE_STATUS_INVALID_ARGUMENT, "two tasks are needed");
    measure_cold();
    measure_sequential();
    measure_barrier();
    measure_locks();
    measure_migratory();
    measure_stencil();
    must(hanare_dsm_finish(dsm), "finish");
    return 0;
}
