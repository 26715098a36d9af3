/* SPDX-License-Identifier: Apache-2.0
 *
 * sections ROUNDS [STEPS]: as molecular dynamics do (Water of SPLASH).  Each task has rows of two
 * tables whose blocks it shares with others.  In each step it changes its rows of the first, which
 * all read behind a barrier; then all add to some rows of the second, whose rows are cleared by
 * their task before and are added to under the lock of it, one task's after the other.  All begins
 * in task 0's memory.  What is read is what was written, and all sums are right.  Prints "right" in
 * each task. */
#include <string.h>

#include "task.h"

enum { kRows = 61, kColumns = 9, kLocksMax = 3000, kFirstLock = 100, kTasksMax = 16 };
typedef uint64_t row[kColumns];

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static uint64_t draw(uint64_t round, uint64_t step, uint64_t what, uint64_t at, uint64_t column) {
    return mix((((round * 64 + step) * 64 + what) * kRows + at) * kColumns + column + 1);
}

/* What the task adds to the row, to many of them nothing. */
static uint64_t part(uint64_t round, uint64_t step, uint32_t task, uint64_t at, uint64_t column) {
    if (draw(round, step, 32 + task, at, kColumns) % 3 == 0) return 0;
    return draw(round, step, 1 + task, at, column);
}

static void equal(uint64_t wanted, uint64_t is, const char *what, uint64_t round, uint64_t step,
                  uint64_t at) {
    if (wanted == is) return;
    fprintf(stderr, "task %u, round %llu, step %llu, %s of row %llu: %llx, not %llx\n", rank,
            (unsigned long long)round, (unsigned long long)step, what, (unsigned long long)at,
            (unsigned long long)is, (unsigned long long)wanted);
    exit(1);
}

static uint64_t first_row(uint32_t task) { return (uint64_t)kRows * task / size; }

static void add_to(row *sums, uint64_t round, uint64_t step, uint32_t task) {
    const uint32_t lock = kFirstLock + (uint32_t)(round % kLocksMax) * size + task;
    must(hanare_dsm_lock(dsm, lock), "lock");
    for (uint64_t at = first_row(task); at < first_row(task + 1); ++at) {
        if (draw(round, step, 32 + rank, at, kColumns) % 3 == 0) continue;
        for (uint64_t i = 0; i < kColumns; ++i) sums[at][i] += part(round, step, rank, at, i);
    }
    must(hanare_dsm_unlock(dsm, lock), "unlock");
}

static void take_step(row *values, row *sums, uint64_t round, uint64_t step) {
    const uint64_t begin_row = first_row(rank), end_row = first_row(rank + 1);
    for (uint64_t at = begin_row; at < end_row; ++at) {
        for (uint64_t i = 0; i < kColumns; ++i) values[at][i] = draw(round, step, 0, at, i);
    }
    memset(sums + begin_row, 0, (end_row - begin_row) * sizeof(row));
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    for (uint64_t at = 0; at < kRows; ++at) {
        for (uint64_t i = 0; i < kColumns; ++i) {
            equal(draw(round, step, 0, at, i), values[at][i], "value", round, step, at);
        }
    }
    for (uint32_t next = 0; next < size; ++next) {
        add_to(sums, round, step, (rank + next) % size);
    }
    must(hanare_dsm_barrier(dsm, 2), "barrier");
    for (uint64_t at = begin_row; at < end_row; ++at) {
        for (uint64_t i = 0; i < kColumns; ++i) {
            uint64_t wanted = 0;
            for (uint32_t task = 0; task < size; ++task) wanted += part(round, step, task, at, i);
            equal(wanted, sums[at][i], "sum", round, step, at);
            values[at][i] += wanted;
        }
    }
}

int main(int argc, char **argv) {
    const uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 8;
    const uint64_t steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 6;
    begin();
    if (size > kTasksMax) return 2;
    /* New memory in each round: a home moves a few times only. */
    const size_t table_words = (kRows * kColumns * sizeof(uint64_t) + 4095) / 4096 * 512;
    get_shared(rounds * 2 * table_words * sizeof *shared);
    for (uint64_t round = 0; round < rounds; ++round) {
        row *const values = (row *)(shared + 2 * round * table_words);
        row *const sums = (row *)(shared + (2 * round + 1) * table_words);
        if (rank == 0) {
            memset(values, 1, kRows * sizeof(row));
            memset(sums, 1, kRows * sizeof(row));
        }
        must(hanare_dsm_barrier(dsm, 3), "barrier");
        for (uint64_t step = 0; step < steps; ++step) take_step(values, sums, round, step);
    }
    must(hanare_dsm_finish(dsm), "finish");
    printf("right\n");
    return 0;
}
