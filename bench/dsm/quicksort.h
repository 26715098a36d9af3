// SPDX-License-Identifier: Apache-2.0
//
// QSort: quicksort by a queue of ranges (Midorikawa, Iizuka 1998, section 4.2.6): a process takes a
// range, divides it, queues one part and goes on with the other, down to ranges of at most `leaf`
// keys, which it sorts by bubble sort or by quicksort.  Table 2 has 512 K keys with leaves of 1024
// (SUN, the default here) and 1000 K keys with leaves of 1000 (PC).
#ifndef HANARE_BENCH_DSM_QUICKSORT_H
#define HANARE_BENCH_DSM_QUICKSORT_H

#include "dsm_bench.h"

struct quicksort {
    long keys, leaf;
    long bubble;  // 1: bubble sort in the leaves
};

void quicksort_fill(const struct quicksort *sort, int *keys);

// Divides a range of two keys or more: no key before the returned place is above one from there on.
// Neither part is empty.
long quicksort_divide(int *keys, struct share range);

void quicksort_leaf(const struct quicksort *sort, int *keys, struct share range);

static inline bool quicksort_is_leaf(const struct quicksort *sort, struct share range) {
    return range.end - range.begin <= sort->leaf;
}

// Ranges that wait, the last one first.
struct range_stack {
    struct share *ranges;
    long count, room;
};

void range_push(struct range_stack *stack, struct share range);
bool range_pop(struct range_stack *stack, struct share *range);

// The form's: fills *keys with the keys in order in process 0; returns seconds.
double quicksort_run(const struct quicksort *sort, int **keys);

#endif
