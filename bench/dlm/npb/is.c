/* SPDX-License-Identifier: Apache-2.0
 *
 * NPB IS: ranks integer keys ten times (RNR-94-007; class B as in NPB 2).  A ranking
 * counts the keys by buckets, copies them bucket by bucket, and then counts each bucket's keys in
 * a part of the counters that fits the nearest cache.  Two keys change before each, so that none
 * can be left out, and five keys' ranks are known for every class; at the end the keys are put in
 * order by their ranks.
 */
#include "dlm_bench.h"
#include "is_official.h"
#include "npb_random.h"

#ifndef NPB_ITERATIONS
#define NPB_ITERATIONS kIterations
#endif

enum {
    kBucketsLog2 = 6, /* few: each is written to at a place of its own */
    kBuckets = 1 << kBucketsLog2,
    kBucketShift = kMaxKeyLog2 - kBucketsLog2
};

/* Keys, their copy in the order of buckets, and for each value how many keys are not above it. */
dlm int key_array[kKeys], key_buff2[kKeys], key_buff1[kMaxKey];

static int bucket_begin[kBuckets + 1]; /* in key_buff2 */

/* Each key is the mean of four numbers of the generator, in units of the greatest key. */
static void make_keys(void) {
    uint64_t seed = NPB_SEED;
    for (int at = 0; at < kKeys; ++at) {
        double sum = npb_random(&seed);
        for (int i = 1; i < 4; ++i) sum += npb_random(&seed);
        key_array[at] = (int)(sum * (kMaxKey / 4));
    }
}

/* Four tables, since neighbouring keys are often of one bucket, and would wait for each other. */
static void count_buckets(void) {
    static int counts[4][kBuckets];
    memset(counts, 0, sizeof(counts));
    for (int at = 0; at < kKeys; at += 4) {
        for (int i = 0; i < 4; ++i) ++counts[i][key_array[at + i] >> kBucketShift];
    }
    int before = 0;
    for (int bucket = 0; bucket < kBuckets; ++bucket) {
        bucket_begin[bucket] = before;
        for (int i = 0; i < 4; ++i) before += counts[i][bucket];
    }
    bucket_begin[kBuckets] = before;
}

static void fill_buckets(void) {
    int next[kBuckets];
    memcpy(next, bucket_begin, sizeof(next));
    for (int at = 0; at < kKeys; ++at) {
        const int key = key_array[at];
        key_buff2[next[key >> kBucketShift]++] = key;
    }
}

/* The ranks of the bucket's keys, into its part of key_buff1. */
static void rank_bucket(int bucket) {
    const int first = bucket << kBucketShift;
    const int end = first + (1 << kBucketShift);
    memset(&key_buff1[first], 0, (size_t)(end - first) * sizeof(int));
    for (int at = bucket_begin[bucket]; at < bucket_begin[bucket + 1]; ++at) {
        ++key_buff1[key_buff2[at]];
    }
    int below = bucket_begin[bucket];
    for (int key = first; key < end; ++key) key_buff1[key] = below += key_buff1[key];
}

/* Returns how many of the known ranks were met. */
static int rank_keys(int iteration) {
    int key[kTestKeys];
    key_array[iteration] = iteration;
    key_array[iteration + kIterations] = kMaxKey - iteration;
    for (int i = 0; i < kTestKeys; ++i) key[i] = key_array[test_keys[i].index];

    count_buckets();
    fill_buckets();
    for (int bucket = 0; bucket < kBuckets; ++bucket) rank_bucket(bucket);

    int met = 0;
    for (int i = 0; i < kTestKeys; ++i) {
        const struct test_key *const test = &test_keys[i];
        const int rank = key[i] == 0 ? 0 : key_buff1[key[i] - 1];
        met += rank == test->rank + test->step * (iteration - test->origin);
    }
    return met;
}

/* Puts the keys where their ranks say. */
static void sort_keys(void) {
    for (int at = 0; at < kKeys; ++at) {
        const int key = key_buff2[at];
        key_array[--key_buff1[key]] = key;
    }
}

static bool are_sorted(void) {
    int descents = 0;
    for (int at = 1; at < kKeys; ++at) descents += key_array[at - 1] > key_array[at];
    return descents == 0;
}

int main(int argc, char **argv) {
    bench_arguments(argc, argv, NULL, 0);
    make_keys();
    (void)rank_keys(1);

    int met = 0;
    const double start = bench_seconds();
    for (int iteration = 1; iteration <= NPB_ITERATIONS; ++iteration) met += rank_keys(iteration);
    const double seconds = bench_seconds() - start;

    sort_keys();
    const bool sorted = are_sorted();
    printf("NPB IS class %s: %d keys up to %d, %d iterations\n", BENCH_TEXT(NPB_CLASS), kKeys,
           kMaxKey, NPB_ITERATIONS);
    printf("known ranks met: %d of %d; keys are %ssorted\n", met, kTestKeys * kIterations,
           sorted ? "" : "not ");
    const struct bench_result result = {
        .program = "npb_is",
        .size = BENCH_TEXT(NPB_CLASS),
        .bytes = sizeof(key_array) + sizeof(key_buff1) + sizeof(key_buff2),
        .seconds = seconds,
        .rate = 1e-6 * NPB_ITERATIONS * kKeys / seconds,
        .unit = "Mop/s",
        .digest = bench_digest(0, key_array, sizeof(key_array)),
        .wrong = !sorted                          ? "the keys are not sorted"
                 : met != kTestKeys * kIterations ? "ranks differ from the known ones"
                                                  : NULL};
    return bench_finish(&result);
}
