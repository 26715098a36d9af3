/* SPDX-License-Identifier: Apache-2.0
 *
 * sections ROUNDS [STEPS [THREADS]]: as molecular dynamics do (Water of SPLASH).  Each task has
 * rows of two tables whose blocks it shares with others.  In each step it changes its rows of the
 * first, which all read behind a barrier; then all add to some rows of the second, whose rows are
 * cleared by their task before and are added to under the lock of it, one task's after the other.
 * Each task has a board, too, a block that it changes in each step, now and then another task as
 * well, sooner or later, and that all read.  With THREADS, 1, each has a second thread that counts
 * on all boards meanwhile, under their locks, for itself and for all.  All begins in task 0's
 * memory.  What is read is what was written, and all sums are right.  Prints "right" in each task.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "task.h"

enum { kRows = 61, kColumns = 9, kLocksMax = 3000, kFirstLock = 100, kTasksMax = 16 };
enum { kBlockWords = 512, kOwnWords = 64, kGuests = 256, kCounts = 400, kCountOfAll = 511 };
enum { kFirstBoardLock = kFirstLock + kLocksMax * kTasksMax };
typedef uint64_t row[kColumns];
typedef uint64_t board[kBlockWords];

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

static int is_guest(uint64_t round, uint64_t step, uint32_t owner, uint32_t task) {
    return task != owner && draw(round, step, 49, owner, task) % 5 == 0;
}

static uint64_t note(uint64_t round, uint64_t step, uint32_t owner, uint64_t at) {
    return mix(draw(round, step, 48, owner, 0) + at);
}

static void change_boards(board *boards, uint64_t round, uint64_t step) {
    for (uint64_t at = 0; at < kOwnWords; ++at) {
        boards[rank][at] = note(round, step, rank, at);
    }
    for (volatile uint64_t i = draw(round, step, 50, rank, 0) % 20000; i != 0; --i) {
    }
    for (uint32_t owner = 0; owner < size; ++owner) {
        if (!is_guest(round, step, owner, rank)) continue;
        boards[owner][kGuests + rank] = note(round, step, owner, kGuests + rank);
    }
}

static void check_boards(board *boards, uint64_t round, uint64_t step) {
    for (uint32_t owner = 0; owner < size; ++owner) {
        for (uint64_t at = 0; at < kOwnWords; ++at) {
            equal(note(round, step, owner, at), boards[owner][at], "board", round, step, owner);
        }
        for (uint32_t guest = 0; guest < size; ++guest) {
            uint64_t last = step + 1;
            while (last > 0 && !is_guest(round, last - 1, owner, guest)) --last;
            if (last == 0) continue;
            equal(note(round, last - 1, owner, kGuests + guest), boards[owner][kGuests + guest],
                  "guest", round, step, owner);
        }
    }
}

struct counter {
    board *boards;
    uint64_t round;
    uint64_t counts[kTasksMax]; /* on each board */
    atomic_int is_over;
};

static void *count_on(void *context) {
    struct counter *const counter = context;
    uint64_t of_all[kTasksMax] = {0};
    for (uint64_t turn = 0; !atomic_load(&counter->is_over); ++turn) {
        const uint32_t owner = (uint32_t)((turn + rank) % size);
        uint64_t *const words = counter->boards[owner];
        must(hanare_dsm_lock(dsm, kFirstBoardLock + owner), "lock");
        equal(counter->counts[owner], words[kCounts + rank], "count", counter->round, turn, owner);
        words[kCounts + rank] = ++counter->counts[owner];
        if (words[kCountOfAll] < of_all[owner]) {
            equal(of_all[owner], words[kCountOfAll], "count of all", counter->round, turn, owner);
        }
        of_all[owner] = ++words[kCountOfAll];
        must(hanare_dsm_unlock(dsm, kFirstBoardLock + owner), "unlock");
    }
    return NULL;
}

static void check_counts(board *boards, uint64_t round) {
    must(hanare_dsm_barrier(dsm, 4), "barrier");
    for (uint32_t owner = 0; owner < size; ++owner) {
        uint64_t sum = 0;
        for (uint32_t task = 0; task < size; ++task) sum += boards[owner][kCounts + task];
        equal(sum, boards[owner][kCountOfAll], "sum of counts", round, 0, owner);
    }
}

static void take_step(row *values, row *sums, board *boards, uint64_t round, uint64_t step) {
    const uint64_t begin_row = first_row(rank), end_row = first_row(rank + 1);
    for (uint64_t at = begin_row; at < end_row; ++at) {
        for (uint64_t i = 0; i < kColumns; ++i) values[at][i] = draw(round, step, 0, at, i);
    }
    memset(sums + begin_row, 0, (end_row - begin_row) * sizeof(row));
    change_boards(boards, round, step);
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    for (uint64_t at = 0; at < kRows; ++at) {
        for (uint64_t i = 0; i < kColumns; ++i) {
            equal(draw(round, step, 0, at, i), values[at][i], "value", round, step, at);
        }
    }
    check_boards(boards, round, step);
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
    const uint64_t steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 24;
    const int threads = argc > 3 && strtoull(argv[3], NULL, 10) != 0;
    begin();
    if (size > kTasksMax) return 2;
    /* New memory in each round: a home moves a few times only. */
    const size_t table_words =
        (kRows * kColumns + kBlockWords - 1) / kBlockWords * (size_t)kBlockWords;
    const size_t round_words = 2 * table_words + size * (size_t)kBlockWords;
    get_shared(rounds * round_words * sizeof *shared);
    for (uint64_t round = 0; round < rounds; ++round) {
        uint64_t *const begin_word = shared + round * round_words;
        row *const values = (row *)begin_word;
        row *const sums = (row *)(begin_word + table_words);
        board *const boards = (board *)(begin_word + 2 * table_words);
        if (rank == 0) {
            memset(values, 1, kRows * sizeof(row));
            memset(sums, 1, kRows * sizeof(row));
            memset(boards, 0, size * sizeof(board));
        }
        must(hanare_dsm_barrier(dsm, 3), "barrier");
        struct counter counter = {.boards = boards, .round = round};
        pthread_t thread;
        if (threads && pthread_create(&thread, NULL, count_on, &counter) != 0) return 2;
        for (uint64_t step = 0; step < steps; ++step) {
            take_step(values, sums, boards, round, step);
        }
        atomic_store(&counter.is_over, 1);
        if (threads) pthread_join(thread, NULL);
        check_counts(boards, round);
    }
    must(hanare_dsm_finish(dsm), "finish");
    printf("right\n");
    return 0;
}
