// SPDX-License-Identifier: Apache-2.0
//
// QSort on shared memory: keys and queue are shared, one lock is for the queue.  Of a range's two
// parts the longer one is queued.  The keys of a range pass from who queues it to who takes it by
// the same lock, and so does how many keys are not in order yet, which says when all is done.  Who
// finds the queue empty asks again, later and later: there is nothing to wait for by this
// interface.
#include <time.h>

#include "form_tmk.h"
#include "quicksort.h"

enum { kQueueLock = 1, kFilled, kSorted };

struct queue {
    long unsorted;  // keys
    long count;
    struct share ranges[];
};

enum got { kGot, kEmpty, kDone };

// `sorted`: how many keys this process has put in order since it last asked.
static enum got take(struct queue *queue, long sorted, struct share *range) {
    enum got got = kEmpty;
    Tmk_lock_acquire(kQueueLock);
    // A write, even of the same, is one that others would have to be told of.
    if (sorted > 0) queue->unsorted -= sorted;
    if (queue->count > 0) {
        *range = queue->ranges[--queue->count];
        got = kGot;
    } else if (queue->unsorted == 0) {
        got = kDone;
    }
    Tmk_lock_release(kQueueLock);
    return got;
}

static void put(struct queue *queue, struct share range) {
    Tmk_lock_acquire(kQueueLock);
    queue->ranges[queue->count++] = range;
    Tmk_lock_release(kQueueLock);
}

static void wait_a_little(long *microseconds) {
    const struct timespec time = {0, *microseconds * 1000};
    nanosleep(&time, NULL);
    if (*microseconds < 2000) *microseconds *= 2;
}

static void work(const struct quicksort *sort, struct queue *queue, int *keys) {
    enum { kShortestWait = 20 };
    long sorted = 0, wait = kShortestWait;
    for (;;) {
        struct share range;
        const enum got got = take(queue, sorted, &range);
        sorted = 0;
        if (got == kDone) return;
        if (got == kEmpty) {
            wait_a_little(&wait);
            continue;
        }
        wait = kShortestWait;
        while (!quicksort_is_leaf(sort, range)) {
            const long middle = quicksort_divide(keys, range);
            const struct share low = {range.begin, middle}, high = {middle, range.end};
            const bool low_is_short = middle - range.begin < range.end - middle;
            const struct share longer = low_is_short ? high : low;
            range = low_is_short ? low : high;
            put(queue, longer);
        }
        quicksort_leaf(sort, keys, range);
        sorted = range.end - range.begin;
    }
}

double quicksort_run(const struct quicksort *sort, int **keys) {
    *keys = form_share((size_t)sort->keys * sizeof(int));
    // Each range waiting has a key of its own.
    struct queue *const queue =
        form_share(sizeof(*queue) + (size_t)sort->keys * sizeof(struct share));
    if (form_process == 0) {
        quicksort_fill(sort, *keys);
        queue->unsorted = sort->keys;
        queue->count = 1;
        queue->ranges[0].begin = 0;
        queue->ranges[0].end = sort->keys;
    }
    Tmk_barrier(kFilled);
    const double start = dsm_start();
    work(sort, queue, *keys);
    Tmk_barrier(kSorted);
    return dsm_stop(start);
}
