// SPDX-License-Identifier: Apache-2.0
//
// NAS IS, integer sort (RNR-94-007, section 2.5): the ranks of 2^n keys below a maximum, ten times,
// with two keys changed each time (Midorikawa, Iizuka 1998, table 2: 2^23 keys below 2^10, medium,
// and 2^15, large).  Each process has an equal share of the keys and ranks them; to that end all
// add up, by value, how many keys they have (Lu et al., JPDC 43, 1997).
#ifndef HANARE_BENCH_DSM_IS_H
#define HANARE_BENCH_DSM_IS_H

#include "dsm_bench.h"

struct is {
    long keys_log2, max_log2, iterations;
};

static inline long is_keys(const struct is *is) { return 1L << is->keys_log2; }
static inline long is_values(const struct is *is) { return 1L << is->max_log2; }

// One process's keys and their ranks.
struct is_part {
    struct share share;
    int *keys;    // [begin, end)
    int *ranks;   // how many of all keys are below
    int *counts;  // by value, of the process's keys
};

// Makes the process's keys.
struct is_part is_prepare(const struct is *is);

// The two keys that change before ranking number `iteration`, from 1 on; then counts all by value.
void is_count(const struct is *is, const struct is_part *part, long iteration);

// The ranks, given the counts of all keys, which become how many are below each value.
void is_rank(const struct is *is, const struct is_part *part, int *all_counts);

// How many of the keys whose ranks are known the process has, and has ranked right.
uint64_t is_known_ranks_met(const struct is *is, const struct is_part *part, long iteration);

struct is_outcome {
    double seconds;
    uint64_t known_met;  // of this process, in all rankings
};

// The form's.
struct is_outcome is_run(const struct is *is, const struct is_part *part);

#endif
