/* SPDX-License-Identifier: Apache-2.0
 *
 * A program without data races, drawn from a seed, that checks every value it reads against what a
 * sequentially consistent memory would hold: all tasks draw the same program, so that each knows
 * what the others write.
 *
 *     checked_program SEED [EPOCHS [TASK EPOCH]]       below `hanare launch -n N`
 *
 * Between two barriers (an epoch)
 *   - each variable of 1 to 8 bytes, packed without gaps, is written by one task, or read by some;
 *   - counters, several of a lock, which lie among the variables, are raised together under it and
 *     equal each other whenever a task has the lock;
 *   - tasks write entries of a list of their own, say how many under a lock, and read those of
 *     others as far as they were told: what was written before a release, not only within the
 *     critical section, is seen after the next acquire;
 *   - tasks pass a semaphore on, in some order, and read what all before them have written;
 *   - some tasks meet at a barrier of their own, and read what the others have written before;
 *   - tasks wait for a condition until all have raised a number, and read what each wrote before.
 * TASK kills itself somewhere in that EPOCH.
 * Prints one line and returns 0, or says the first difference and returns 1. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hanare/dsm.h"

enum { kVariables = 6000, kLocks = 12, kCounters = 4, kEntries = 512, kTasksMax = 16 };

struct variable {
    uint32_t offset;
    uint32_t bytes;
    uint64_t value; /* as of the last epoch */
};

static struct variable variables[kVariables];
static uint32_t counter_offsets[kLocks][kCounters];
static uint64_t sums[kLocks];
static unsigned char *memory;
static uint64_t *lists;
static uint64_t *passed; /* a number of each task for each of these, without gaps */
static uint64_t seed;
static uint32_t rank;
static uint32_t size;
static uint64_t killed = UINT64_MAX; /* task, in that epoch */
static uint64_t killed_epoch;

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static uint64_t draw(uint64_t *state) { return mix((*state)++); }

static void must(hanare_status status, const char *what) {
    if (status == HANARE_STATUS_OK) return;
    char text[300];
    hanare_last_error(text, sizeof text);
    fprintf(stderr, "task %u: %s: %s\n", rank, what, text);
    exit(2);
}

static void differs(const char *what, uint64_t epoch, uint64_t which, uint64_t is,
                    uint64_t wanted) {
    fprintf(stderr,
            "seed %" PRIu64 ", %u tasks, task %u, epoch %" PRIu64 ": %s %" PRIu64 " is %" PRIx64
            ", not %" PRIx64 "\n",
            seed, size, rank, epoch, what, which, is, wanted);
    exit(1);
}

static uint64_t load(const struct variable *variable) {
    uint64_t value = 0;
    memcpy(&value, memory + variable->offset, variable->bytes);
    return value;
}

static void store(const struct variable *variable, uint64_t value) {
    memcpy(memory + variable->offset, &value, variable->bytes);
}

static uint64_t cut(uint64_t value, uint32_t bytes) {
    return bytes == 8 ? value : value & ((UINT64_C(1) << (8 * bytes)) - 1);
}

/* Returns how many bytes they take. */
static uint32_t lay_out(uint64_t *state) {
    uint32_t at = 0;
    uint32_t lock = 0;
    for (uint32_t i = 0; i < kVariables; ++i) {
        if (draw(state) % 64 == 0) at += (uint32_t)(draw(state) % 9000);
        if (lock < kLocks * kCounters && draw(state) % 64 == 0) {
            at = (at + 7) & ~7u;
            counter_offsets[lock % kLocks][lock / kLocks] = at;
            ++lock;
            at += 8;
        }
        variables[i].offset = at;
        variables[i].bytes = 1u << draw(state) % 4;
        at += variables[i].bytes;
    }
    for (; lock < kLocks * kCounters; ++lock) {
        at = (at + 7) & ~7u;
        counter_offsets[lock % kLocks][lock / kLocks] = at;
        at += 8;
    }
    return at;
}

static uint64_t *counter(uint32_t lock, uint32_t which) {
    return (uint64_t *)(void *)(memory + counter_offsets[lock][which]);
}

static void raise_counters(hanare_dsm *dsm, uint32_t lock, uint64_t epoch) {
    must(hanare_dsm_lock(dsm, lock), "lock");
    const uint64_t before = *counter(lock, 0);
    for (uint32_t i = 0; i < kCounters; ++i) {
        if (*counter(lock, i) != before) differs("counter", epoch, lock, *counter(lock, i), before);
        *counter(lock, i) = before + 1;
    }
    must(hanare_dsm_unlock(dsm, lock), "unlock");
}

/* The list of a task: how many entries, then these. */
static uint64_t *list_of(uint32_t task) { return lists + (size_t)task * (kEntries + 1); }

static void add_entries(hanare_dsm *dsm, uint64_t epoch, uint64_t count) {
    uint64_t *const list = list_of(rank);
    const uint64_t used = epoch * 2;
    for (uint64_t i = 0; i < count; ++i) list[1 + used + i] = mix(seed ^ rank ^ (used + i) << 20);
    must(hanare_dsm_lock(dsm, kLocks + rank), "lock");
    list[0] = used + count;
    must(hanare_dsm_unlock(dsm, kLocks + rank), "unlock");
}

static void read_entries(hanare_dsm *dsm, uint64_t epoch, uint32_t task) {
    const uint64_t *const list = list_of(task);
    must(hanare_dsm_lock(dsm, kLocks + task), "lock");
    const uint64_t count = list[0];
    must(hanare_dsm_unlock(dsm, kLocks + task), "unlock");
    if (count < epoch * 2) differs("entries of task", epoch, task, count, epoch * 2);
    for (uint64_t i = epoch >= 2 ? (epoch - 2) * 2 : 0; i < count; ++i) {
        const uint64_t wanted = mix(seed ^ task ^ i << 20);
        if (list[1 + i] != wanted) differs("entry", epoch, i, list[1 + i], wanted);
    }
}

/* What a task writes in an epoch, before it tells others that it has. */
enum { kPassed, kMet, kCome, kCount = 3 * kTasksMax };
static uint64_t passed_value(uint64_t epoch, uint32_t task, int which) {
    return epoch == 0 ? 0 : mix(seed ^ epoch << 24 ^ task << 4 ^ (uint64_t)which);
}
static uint64_t *passed_of(uint32_t task, int which) {
    return &passed[which * kTasksMax + (int)task];
}
static void check_passed(uint64_t epoch, uint32_t task, int which) {
    const uint64_t wanted = passed_value(epoch, task, which);
    if (*passed_of(task, which) == wanted) return;
    differs("what was passed on by task", epoch, task, *passed_of(task, which), wanted);
}

/* Epochs are counted from 1 here. */
static void pass_semaphore(hanare_dsm *dsm, uint64_t epoch) {
    uint64_t state = mix(seed ^ epoch << 40);
    const uint32_t first = (uint32_t)(draw(&state) % size);
    const uint32_t place = (rank + size - first) % size;
    if (place > 0) must(hanare_dsm_semaphore_wait(dsm, rank), "semaphore wait");
    for (uint32_t i = 0; i < size; ++i) {
        check_passed(i < place ? epoch : epoch - 1, (first + i) % size, kPassed);
    }
    *passed_of(rank, kPassed) = passed_value(epoch, rank, kPassed);
    if (place + 1 < size) must(hanare_dsm_semaphore_post(dsm, (rank + 1) % size), "post");
}

static void meet_some(hanare_dsm *dsm, uint64_t epoch) {
    uint64_t state = mix(seed ^ epoch << 48);
    uint32_t tasks[kTasksMax];
    size_t count = 0;
    int takes_part = 0;
    for (uint32_t task = 0; task < size; ++task) {
        if (draw(&state) % 3 == 0) continue;
        tasks[count++] = task;
        takes_part |= task == rank;
    }
    *passed_of(rank, kMet) = passed_value(epoch, rank, kMet);
    if (!takes_part) return;
    must(hanare_dsm_barrier_group(dsm, (uint32_t)(epoch % 3), tasks, count), "group barrier");
    for (size_t i = 0; i < count; ++i) check_passed(epoch, tasks[i], kMet);
}

static void await_all(hanare_dsm *dsm, uint64_t epoch) {
    const uint32_t lock = kLocks + kTasksMax;
    *passed_of(rank, kCome) = passed_value(epoch, rank, kCome);
    must(hanare_dsm_lock(dsm, lock), "lock");
    if (++passed[kCount] == epoch * size) must(hanare_dsm_broadcast(dsm, lock, 5), "broadcast");
    while (passed[kCount] < epoch * size) must(hanare_dsm_wait(dsm, lock, 5), "wait");
    must(hanare_dsm_unlock(dsm, lock), "unlock");
    for (uint32_t task = 0; task < size; ++task) check_passed(epoch, task, kCome);
}

static void run_epoch(hanare_dsm *dsm, uint64_t epoch) {
    uint64_t common = mix(seed ^ epoch << 32);
    uint64_t own = mix(common ^ (rank + 1));
    const uint64_t written_one_in = 1 + draw(&common) % 16;
    const uint64_t runs = 1 + draw(&common) % 64;
    uint32_t owner = 0;
    uint64_t raised[kTasksMax][2];
    for (uint32_t task = 0; task < size; ++task) {
        raised[task][0] = draw(&common) % kLocks;
        raised[task][1] = draw(&common) % 6;
    }
    for (uint32_t i = 0; i < kVariables; ++i) {
        struct variable *const variable = &variables[i];
        if (i % runs == 0) owner = (uint32_t)(draw(&common) % size);
        const uint64_t value = cut(draw(&common), variable->bytes);
        const int is_written = draw(&common) % written_one_in == 0;
        if (is_written) {
            if (owner == rank) {
                if (draw(&own) % 4 == 0) {
                    const uint64_t is = load(variable);
                    if (is != variable->value) differs("variable", epoch, i, is, variable->value);
                }
                store(variable, value);
            }
            variable->value = value;
        } else if (draw(&own) % 8 == 0) {
            const uint64_t is = load(variable);
            if (is != variable->value) differs("variable", epoch, i, is, variable->value);
        }
        if (rank == killed && epoch == killed_epoch && i == seed % kVariables) {
            kill(getpid(), SIGKILL);
        }
        if (i % (kVariables / 8) == 0) {
            const uint64_t what = draw(&own) % 4;
            if (what == 0) read_entries(dsm, epoch, (uint32_t)(draw(&own) % size));
            if (what == 1 && raised[rank][1] > 0) {
                raise_counters(dsm, (uint32_t)raised[rank][0], epoch);
                --raised[rank][1];
            }
            if (i == kVariables / 2) add_entries(dsm, epoch, 2);
        }
    }
    pass_semaphore(dsm, epoch + 1);
    meet_some(dsm, epoch + 1);
    await_all(dsm, epoch + 1);
    for (; raised[rank][1] > 0; --raised[rank][1]) {
        raise_counters(dsm, (uint32_t)raised[rank][0], epoch);
    }
    common = mix(seed ^ epoch << 32);
    draw(&common), draw(&common);
    for (uint32_t task = 0; task < size; ++task) {
        const uint64_t lock = draw(&common) % kLocks;
        sums[lock] += draw(&common) % 6;
    }
}

int main(int argc, char **argv) {
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const uint64_t epochs = argc > 2 ? strtoull(argv[2], NULL, 10) : 12;
    if (epochs * 2 > kEntries) return 2;
    if (argc > 4) {
        killed = strtoull(argv[3], NULL, 10);
        killed_epoch = strtoull(argv[4], NULL, 10);
    }
    static void *addresses[3];
    hanare_dsm *dsm = NULL;
    must(hanare_dsm_start(NULL, &dsm), "start");
    must(hanare_dsm_rank(dsm, &rank), "rank");
    must(hanare_dsm_size(dsm, &size), "size");
    if (size > kTasksMax) return 2;
    uint64_t state = mix(seed);
    const uint32_t bytes = lay_out(&state);
    const uint32_t maker = (uint32_t)(draw(&state) % size);
    if (rank == maker) {
        must(hanare_dsm_allocate(dsm, bytes, &addresses[0]), "allocate");
        must(hanare_dsm_allocate(dsm, size * (kEntries + 1) * sizeof(uint64_t), &addresses[1]),
             "allocate");
        must(hanare_dsm_allocate(dsm, (kCount + 1) * sizeof(uint64_t), &addresses[2]), "allocate");
        for (uint32_t task = 0; task < size; ++task) {
            must(hanare_dsm_semaphore_make(dsm, task, 0), "make");
        }
        must(hanare_dsm_distribute(dsm, addresses, sizeof addresses), "distribute");
    }
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    memory = addresses[0];
    lists = addresses[1];
    passed = addresses[2];
    for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
        run_epoch(dsm, epoch);
        must(hanare_dsm_barrier(dsm, (uint32_t)(epoch + 2)), "barrier");
        for (uint32_t lock = 0; lock < kLocks; ++lock) {
            const uint32_t which = (uint32_t)((rank + lock) % kCounters);
            const uint64_t is = *counter(lock, which);
            if (is != sums[lock]) differs("sum", epoch, lock, is, sums[lock]);
        }
        must(hanare_dsm_barrier(dsm, (uint32_t)(epoch + 3)), "barrier");
    }
    hanare_dsm_counters counters = {.struct_size = sizeof counters};
    must(hanare_dsm_count(dsm, &counters), "count");
    must(hanare_dsm_finish(dsm), "finish");
    printf("task %u: as it should be; %" PRIu64 " read and %" PRIu64 " write faults, %" PRIu64
           " diffs, %" PRIu64 " of %" PRIu64 " locks from others\n",
           rank, counters.read_faults, counters.write_faults, counters.diffs, counters.remote_locks,
           counters.locks);
    return 0;
}
