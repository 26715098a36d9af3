/* SPDX-License-Identifier: Apache-2.0
 *
 * Condition variables, semaphores and barriers of some tasks; one case in a run.
 *
 *     waits CASE        below `hanare launch -n N`
 *
 * Prints "right" in each task, or says what is wrong and returns 1. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "task.h"

static void equal(uint64_t wanted, uint64_t is, const char *what) {
    if (wanted == is) return;
    fprintf(stderr, "task %u: %s: %llu, not %llu\n", rank, what, (unsigned long long)is,
            (unsigned long long)wanted);
    exit(1);
}

static void pause_ms(long ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

enum { kLock = 11, kOther = 12, kFull = 21, kEmpty = 22, kPageWords = 512 };

/* ---- conditions */

/* All tasks put numbers into a buffer, and take as many from it. */
enum { kRoom = 4, kNumbers = 200, kBuffer = kPageWords, kSum = 2 * kPageWords };
static void put(uint64_t number) {
    must(hanare_dsm_lock(dsm, kLock), "lock");
    while (shared[0] == kRoom) must(hanare_dsm_wait(dsm, kLock, kFull), "wait for room");
    shared[kBuffer + shared[0]++] = number;
    must(hanare_dsm_signal(dsm, kLock, kEmpty), "signal of a number");
    must(hanare_dsm_unlock(dsm, kLock), "unlock");
}
static void take(void) {
    must(hanare_dsm_lock(dsm, kLock), "lock");
    while (shared[0] == 0) must(hanare_dsm_wait(dsm, kLock, kEmpty), "wait for a number");
    shared[kSum] += shared[kBuffer + --shared[0]];
    must(hanare_dsm_signal(dsm, kLock, kFull), "signal of room");
    must(hanare_dsm_unlock(dsm, kLock), "unlock");
}
static void *put_all(void *unused) {
    (void)unused;
    for (uint64_t i = 1; i <= kNumbers; ++i) put(i);
    return NULL;
}
static void buffer(void) {
    get_shared(1 << 16);
    pthread_t thread;
    if (pthread_create(&thread, NULL, put_all, NULL) != 0) wrong("thread", HANARE_STATUS_OK);
    for (uint64_t i = 0; i < kNumbers; ++i) take();
    pthread_join(thread, NULL);
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    equal((uint64_t)size * kNumbers * (kNumbers + 1) / 2, shared[kSum], "sum of what was taken");
    equal(0, shared[0], "what is left");
}

/* All wait for task 0, round after round; what it has written before it took the lock is seen. */
static void broadcast(void) {
    enum { kRounds = 50 };
    get_shared(1 << 16);
    for (uint64_t round = 1; round <= kRounds; ++round) {
        must(hanare_dsm_lock(dsm, kLock), "lock");
        if (rank == 0) {
            while (shared[1] < (size - 1) * round) {
                must(hanare_dsm_wait(dsm, kLock, kFull), "wait for all");
            }
            must(hanare_dsm_unlock(dsm, kLock), "unlock");
            shared[kPageWords] = round * 7;
            must(hanare_dsm_lock(dsm, kLock), "lock");
            shared[0] = round;
            must(hanare_dsm_broadcast(dsm, kLock, kEmpty), "broadcast");
        } else {
            shared[1] += 1;
            must(hanare_dsm_signal(dsm, kLock, kFull), "signal");
            while (shared[0] < round) must(hanare_dsm_wait(dsm, kLock, kEmpty), "wait");
            equal(round * 7, shared[kPageWords], "what was written before");
        }
        must(hanare_dsm_unlock(dsm, kLock), "unlock");
    }
}

static void wrong_conditions(void) {
    get_shared(4096);
    const hanare_status bad = HANARE_STATUS_INVALID_ARGUMENT;
    expect(bad, hanare_dsm_wait(dsm, kLock, kFull), "wait without the lock");
    expect(bad, hanare_dsm_signal(dsm, kLock, kFull), "signal without the lock");
    expect(bad, hanare_dsm_broadcast(dsm, kLock, kFull), "broadcast without the lock");
    expect(bad, hanare_dsm_wait(dsm, HANARE_DSM_LOCKS, kFull), "no such lock");
    expect(bad, hanare_dsm_signal(dsm, kLock, HANARE_DSM_CONDITIONS), "no such condition");
    must(hanare_dsm_lock(dsm, kLock), "lock");
    must(hanare_dsm_signal(dsm, kLock, kFull), "signal to nobody");
    must(hanare_dsm_broadcast(dsm, kLock, kFull), "broadcast to nobody");
    must(hanare_dsm_unlock(dsm, kLock), "unlock");
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    if (size < 2) return;
    if (rank == 1) {
        must(hanare_dsm_lock(dsm, kLock), "lock");
        shared[0] = 1;
        while (shared[0] != 2) must(hanare_dsm_wait(dsm, kLock, kFull), "wait");
        must(hanare_dsm_unlock(dsm, kLock), "unlock");
    }
    if (rank == 0) {
        uint64_t waits = 0;
        while (waits == 0) {
            must(hanare_dsm_lock(dsm, kLock), "lock");
            waits = shared[0];
            must(hanare_dsm_unlock(dsm, kLock), "unlock");
        }
        must(hanare_dsm_lock(dsm, kOther), "another lock");
        expect(bad, hanare_dsm_wait(dsm, kOther, kFull), "wait with another lock");
        expect(bad, hanare_dsm_signal(dsm, kOther, kFull), "signal with another lock");
        must(hanare_dsm_unlock(dsm, kOther), "unlock");
        must(hanare_dsm_lock(dsm, kLock), "lock");
        shared[0] = 2;
        must(hanare_dsm_signal(dsm, kLock, kFull), "signal");
        must(hanare_dsm_unlock(dsm, kLock), "unlock");
    }
    must(hanare_dsm_barrier(dsm, 2), "barrier");
    /* It belongs to nobody now. */
    if (rank != 0) return;
    must(hanare_dsm_lock(dsm, kOther), "another lock");
    must(hanare_dsm_signal(dsm, kOther, kFull), "signal with another lock");
    must(hanare_dsm_unlock(dsm, kOther), "unlock");
}

/* ---- semaphores */

/* A number goes round; each task sees what all before it have written, also in other rounds. */
static void ring(void) {
    enum { kRounds = 60 };
    get_shared((size_t)(size + 1) * 4096);
    must(hanare_dsm_semaphore_make(dsm, rank, rank == 0), "make");
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    for (uint64_t round = 1; round <= kRounds; ++round) {
        must(hanare_dsm_semaphore_wait(dsm, rank), "wait");
        for (uint32_t task = 0; task < size; ++task) {
            equal(task < rank ? round : round - 1, shared[task * kPageWords], "a task's round");
        }
        shared[rank * kPageWords] = round;
        must(hanare_dsm_semaphore_post(dsm, (rank + 1) % size), "post");
    }
    must(hanare_dsm_barrier(dsm, 2), "barrier");
    if (rank == 0) must(hanare_dsm_semaphore_wait(dsm, 0), "the last post");
    must(hanare_dsm_barrier(dsm, 3), "barrier");
    must(hanare_dsm_semaphore_end(dsm, rank), "end");
}

/* Who only passes it on has not read it. */
static void chain(void) {
    get_shared(1 << 16);
    if (rank == 0) shared[kPageWords] = 0; /* its home is there */
    must(hanare_dsm_semaphore_make(dsm, rank, 0), "make");
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    if (rank == size - 1) equal(0, shared[kPageWords], "before");
    must(hanare_dsm_barrier(dsm, 2), "barrier");
    if (rank == 0) shared[kPageWords] = 5;
    if (rank > 0) must(hanare_dsm_semaphore_wait(dsm, rank), "wait");
    if (rank < size - 1) must(hanare_dsm_semaphore_post(dsm, rank + 1), "post");
    if (rank == size - 1) equal(5, shared[kPageWords], "what the first has written");
}

/* Two at a time; a count is what was posted. */
static void counting(void) {
    enum { kRounds = 100, kInside = 3 };
    get_shared(1 << 16);
    if (rank == 0) must(hanare_dsm_semaphore_make(dsm, 1, 2), "make");
    if (rank == 0) must(hanare_dsm_semaphore_make(dsm, 2, 0), "make");
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    for (int round = 0; round < kRounds; ++round) {
        must(hanare_dsm_semaphore_wait(dsm, 1), "wait");
        must(hanare_dsm_lock(dsm, kLock), "lock");
        if (++shared[kInside] > 2) wrong("more than two", HANARE_STATUS_OK);
        must(hanare_dsm_unlock(dsm, kLock), "unlock");
        must(hanare_dsm_lock(dsm, kLock), "lock");
        --shared[kInside];
        must(hanare_dsm_unlock(dsm, kLock), "unlock");
        must(hanare_dsm_semaphore_post(dsm, 1), "post");
        must(hanare_dsm_semaphore_post(dsm, 2), "post");
    }
    for (int round = 0; round < kRounds; ++round) {
        must(hanare_dsm_semaphore_wait(dsm, 2), "wait for what was posted");
    }
}

static void wrong_semaphores(void) {
    const hanare_status none = HANARE_STATUS_NOT_FOUND;
    const uint32_t own = 100 + rank;
    expect(none, hanare_dsm_semaphore_wait(dsm, own), "wait before it is there");
    expect(none, hanare_dsm_semaphore_post(dsm, own), "post before it is there");
    expect(none, hanare_dsm_semaphore_end(dsm, own), "end before it is there");
    expect(HANARE_STATUS_INVALID_ARGUMENT, hanare_dsm_semaphore_make(dsm, HANARE_DSM_SEMAPHORES, 1),
           "no such semaphore");
    expect(HANARE_STATUS_LIMIT, hanare_dsm_semaphore_make(dsm, own, HANARE_DSM_SEMAPHORE_MAX + 1),
           "too large a count");
    must(hanare_dsm_semaphore_make(dsm, own, HANARE_DSM_SEMAPHORE_MAX), "make");
    expect(HANARE_STATUS_BUSY, hanare_dsm_semaphore_make(dsm, own, 1), "make twice");
    expect(HANARE_STATUS_LIMIT, hanare_dsm_semaphore_post(dsm, own), "post to the largest count");
    must(hanare_dsm_semaphore_wait(dsm, own), "wait");
    must(hanare_dsm_semaphore_end(dsm, own), "end");
    expect(none, hanare_dsm_semaphore_wait(dsm, own), "wait after its end");
    expect(none, hanare_dsm_semaphore_post(dsm, own), "post after its end");
    expect(none, hanare_dsm_semaphore_end(dsm, own), "end twice");
    if (rank == 0) must(hanare_dsm_semaphore_make(dsm, 7, 0), "make");
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    if (size < 2) return;
    if (rank == 1) must(hanare_dsm_semaphore_wait(dsm, 7), "wait");
    if (rank == 0) {
        pause_ms(300);
        expect(HANARE_STATUS_BUSY, hanare_dsm_semaphore_end(dsm, 7), "end while others wait");
        must(hanare_dsm_semaphore_post(dsm, 7), "post");
    }
    must(hanare_dsm_barrier(dsm, 2), "barrier");
}

/* ---- barriers of some */

/* Tasks of equal parity meet; then neighbours do, in two ways at once. */
static void groups(void) {
    enum { kRounds = 40 };
    get_shared((size_t)(size + 1) * 4096);
    uint32_t tasks[256];
    size_t count = 0;
    for (uint32_t task = rank % 2; task < size; task += 2) tasks[count++] = task;
    for (uint64_t round = 1; round <= kRounds; ++round) {
        shared[rank * kPageWords] = round;
        must(hanare_dsm_barrier_group(dsm, 5, tasks, count), "group");
        for (size_t i = 0; i < count; ++i) equal(round, shared[tasks[i] * kPageWords], "of a task");
        must(hanare_dsm_barrier_group(dsm, 5, tasks, count), "group");
        for (uint32_t first = 0; first + 1 < size; ++first) {
            const uint32_t pair[2] = {first + 1, first};
            if (rank != first && rank != first + 1) continue;
            must(hanare_dsm_barrier_group(dsm, 100 + first, pair, 2), "pair");
        }
        must(hanare_dsm_barrier_group(dsm, 9, &rank, 1), "alone");
        /* Over the pairs the first task's write came to the last one. */
        if (rank == size - 1) equal(round, shared[0], "over all pairs");
        must(hanare_dsm_barrier(dsm, (uint32_t)round), "barrier");
    }
}

static void wrong_groups(void) {
    const hanare_status bad = HANARE_STATUS_INVALID_ARGUMENT;
    const uint32_t twice[2] = {rank, rank};
    const uint32_t beyond[2] = {rank, size};
    const uint32_t others[1] = {(rank + 1) % size};
    expect(bad, hanare_dsm_barrier_group(dsm, 1, twice, 2), "a task twice");
    expect(bad, hanare_dsm_barrier_group(dsm, 1, beyond, 2), "a task beyond the last");
    expect(bad, hanare_dsm_barrier_group(dsm, 1, &rank, 0), "an empty group");
    expect(bad, hanare_dsm_barrier_group(dsm, 1, NULL, 1), "no group");
    if (size > 1) expect(bad, hanare_dsm_barrier_group(dsm, 1, others, 1), "a group of others");
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    if (size < 3) return;
    const uint32_t all[3] = {0, 1, 2};
    if (rank == 0) must(hanare_dsm_barrier_group(dsm, 2, all, 2), "two");
    if (rank == 1) {
        pause_ms(300);
        expect(bad, hanare_dsm_barrier_group(dsm, 2, all, 3), "another group");
        must(hanare_dsm_barrier_group(dsm, 2, all, 2), "two");
    }
    must(hanare_dsm_barrier(dsm, 2), "barrier");
}

/* ---- the last task goes away; the others wait for it */

static void pass_before_loss(void) {
    const hanare_status status = hanare_dsm_barrier(dsm, 99);
    if (status != HANARE_STATUS_PEER_LOST) must(status, "barrier");
    if (rank == size - 1) {
        pause_ms(200);
        kill(getpid(), SIGKILL);
    }
}
static void expect_loss(hanare_status status, const char *what) {
    char text[300];
    hanare_last_error(text, sizeof text);
    expect(HANARE_STATUS_PEER_LOST, status, what);
    fprintf(stderr, "%s\n", text);
    pause_ms(700); /* the others are to find the first loss, not this one */
    _exit(0);
}
static void lost_condition(void) {
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    pass_before_loss();
    hanare_status status = hanare_dsm_lock(dsm, kLock);
    if (status == HANARE_STATUS_OK) status = hanare_dsm_wait(dsm, kLock, kFull);
    expect_loss(status, "wait");
}
static void lost_semaphore(void) {
    if (rank == 0) must(hanare_dsm_semaphore_make(dsm, 0, 0), "make");
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    pass_before_loss();
    expect_loss(hanare_dsm_semaphore_wait(dsm, 0), "wait");
}
static void lost_group(void) {
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    pass_before_loss();
    const uint32_t pair[2] = {rank, size - 1};
    expect_loss(hanare_dsm_barrier_group(dsm, 2, pair, 2), "group");
}

static void running(void) {
    hanare_dsm *found = NULL;
    must(hanare_dsm_running(&found), "running");
    if (found != dsm) wrong("another one", HANARE_STATUS_OK);
}

static const struct {
    const char *name;
    void (*run)(void);
} kCases[] = {
    {"buffer", buffer},
    {"broadcast", broadcast},
    {"wrong_conditions", wrong_conditions},
    {"ring", ring},
    {"chain", chain},
    {"counting", counting},
    {"wrong_semaphores", wrong_semaphores},
    {"groups", groups},
    {"wrong_groups", wrong_groups},
    {"lost_condition", lost_condition},
    {"lost_semaphore", lost_semaphore},
    {"lost_group", lost_group},
    {"running", running},
};

int main(int argc, char **argv) {
    hanare_dsm *none = NULL;
    expect(HANARE_STATUS_NOT_FOUND, hanare_dsm_running(&none), "running before the start");
    begin();
    for (size_t i = 0; i < sizeof kCases / sizeof kCases[0]; ++i) {
        if (argc < 2 || strcmp(kCases[i].name, argv[1]) != 0) continue;
        kCases[i].run();
        must(hanare_dsm_finish(dsm), "finish");
        expect(HANARE_STATUS_NOT_FOUND, hanare_dsm_running(&none), "running after the end");
        printf("right\n");
        return 0;
    }
    fprintf(stderr, "waits: no such case\n");
    return 2;
}
