// SPDX-License-Identifier: Apache-2.0
//
// IS: the kernels, and their verification.  Every process makes all keys another time, puts them in
// order by the C library, and finds each of its keys' ranks there.  For classes S, W and A (2^16
// keys below 2^11, 2^20 below 2^16, 2^23 below 2^19) known ranks of five keys are checked after
// each ranking, too.
#include "is.h"

#include "npb_random.h"

static const uint64_t kSeed = 314159265;

// Key number `index` has rank `rank` + `step` * (iteration - `origin`), and rank 0 at least: the
// benchmark's partial verification.
enum { kTestKeys = 5 };
static const struct official {
    long keys_log2, max_log2;
    struct {
        int index, rank, step, origin;
    } test[kTestKeys];
} official[] = {
    {16,
     11,
     {{48427, 0, 1, 0},
      {17148, 18, 1, 0},
      {23627, 346, 1, 0},
      {62548, 64917, -1, 0},
      {4431, 65463, -1, 0}}},
    {20,
     16,
     {{357773, 1249, 1, 2},
      {934767, 11698, 1, 2},
      {875723, 1039987, -1, 0},
      {898999, 1043896, -1, 0},
      {404505, 1048018, -1, 0}}},
    {23,
     19,
     {{2112377, 104, 1, 1},
      {662041, 17523, 1, 1},
      {5336171, 123928, 1, 1},
      {3642833, 8288932, -1, 1},
      {4250760, 8388264, -1, 1}}},
};

static const struct official *official_of(const struct is *is) {
    for (size_t i = 0; i < sizeof(official) / sizeof(official[0]); ++i) {
        const bool same =
            official[i].keys_log2 == is->keys_log2 && official[i].max_log2 == is->max_log2;
        if (same) return &official[i];
    }
    return NULL;
}

// Each key is the mean of four numbers of the generator, in units of the greatest key.
static void make_keys(const struct is *is, struct share share, int *keys) {
    const double scale = (double)(is_values(is) / 4);
    uint64_t seed = npb_random_jump(kSeed, 4 * (uint64_t)share.begin);
    for (long at = 0; at < share.end - share.begin; ++at) {
        double sum = npb_random(&seed);
        for (int i = 1; i < 4; ++i) sum += npb_random(&seed);
        keys[at] = (int)(sum * scale);
    }
}

static void change_key(const struct is *is, struct share share, int *keys, long index, long key) {
    if (index >= share.begin && index < share.end) {
        keys[index - share.begin] = (int)(key % is_values(is));
    }
}

static void change_keys(const struct is *is, struct share share, int *keys, long iteration) {
    change_key(is, share, keys, iteration, iteration);
    change_key(is, share, keys, iteration + is->iterations, is_values(is) - iteration);
}

struct is_part is_prepare(const struct is *is) {
    struct is_part part = {.share = own_share(is_keys(is))};
    const size_t count = (size_t)(part.share.end - part.share.begin);
    part.keys = dsm_allocate(count, sizeof(int));
    part.ranks = dsm_allocate(count, sizeof(int));
    part.counts = dsm_allocate((size_t)is_values(is), sizeof(int));
    make_keys(is, part.share, part.keys);
    return part;
}

void is_count(const struct is *is, const struct is_part *part, long iteration) {
    change_keys(is, part->share, part->keys, iteration);
    memset(part->counts, 0, (size_t)is_values(is) * sizeof(int));
    const long count = part->share.end - part->share.begin;
    for (long at = 0; at < count; ++at) ++part->counts[part->keys[at]];
}

void is_rank(const struct is *is, const struct is_part *part, int *all_counts) {
    int below = 0;
    for (long value = 0; value < is_values(is); ++value) {
        const int count = all_counts[value];
        all_counts[value] = below;
        below += count;
    }
    const long count = part->share.end - part->share.begin;
    for (long at = 0; at < count; ++at) part->ranks[at] = all_counts[part->keys[at]];
}

uint64_t is_known_ranks_met(const struct is *is, const struct is_part *part, long iteration) {
    const struct official *const known = official_of(is);
    uint64_t met = 0;
    for (int i = 0; known != NULL && i < kTestKeys; ++i) {
        const long at = known->test[i].index - part->share.begin;
        if (at < 0 || known->test[i].index >= part->share.end) continue;
        const long wanted =
            known->test[i].rank + known->test[i].step * (iteration - known->test[i].origin);
        met += part->ranks[at] == wanted;
    }
    return met;
}

static int compare(const void *left, const void *right) {
    const int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

static int *sorted_keys(const struct is *is) {
    const struct share all = {0, is_keys(is)};
    int *const keys = dsm_allocate((size_t)all.end, sizeof(int));
    make_keys(is, all, keys);
    for (long i = 1; i <= is->iterations; ++i) change_keys(is, all, keys, i);
    qsort(keys, (size_t)all.end, sizeof(int), compare);
    return keys;
}

// How many of the process's keys do not have the rank of their first equal in the order.
static uint64_t count_wrong(const struct is *is, const struct is_part *part) {
    int *const sorted = sorted_keys(is);
    const long all = is_keys(is);
    uint64_t wrong = 0;
    for (long at = 0; at < part->share.end - part->share.begin; ++at) {
        const long rank = part->ranks[at];
        const bool right = rank >= 0 && rank < all && sorted[rank] == part->keys[at] &&
                           (rank == 0 || sorted[rank - 1] < sorted[rank]);
        wrong += !right;
    }
    free(sorted);
    return wrong;
}

static uint64_t digest_of(const struct is_part *part) {
    uint64_t digest = 0;
    for (long at = part->share.begin; at < part->share.end; ++at) {
        digest += dsm_mix((uint64_t)at, (uint64_t)part->ranks[at - part->share.begin]);
    }
    return form_sum(digest);
}

int main(int argc, char **argv) {
    struct is is = {.keys_log2 = 23, .max_log2 = 10, .iterations = 10};
    const struct bench_option options[] = {{"--keys-log2", &is.keys_log2, 8, 30},
                                           {"--max-log2", &is.max_log2, 3, 28},
                                           {"--iterations", &is.iterations, 1, 100}};
    dsm_begin(argc, argv, options, sizeof(options) / sizeof(options[0]));
    const struct is_part part = is_prepare(&is);
    const struct is_outcome outcome = is_run(&is, &part);
    if (dsm_spoil && form_process == 0) ++part.ranks[0];
    char details[96];
    snprintf(details, sizeof(details), "keys_log2=%ld max_log2=%ld iterations=%ld", is.keys_log2,
             is.max_log2, is.iterations);
    struct dsm_result result = {"is", outcome.seconds, details, digest_of(&part), NULL};
    const uint64_t known =
        official_of(&is) != NULL && is.iterations == 10 ? kTestKeys * (uint64_t)is.iterations : 0;
    const uint64_t met = form_sum(outcome.known_met);
    if (known > 0 && met != known) result.wrong = "ranks differ from the known ones";
    if (form_sum(count_wrong(&is, &part)) != 0) result.wrong = "ranks differ from the keys' order";
    free(part.counts);
    free(part.ranks);
    free(part.keys);
    dsm_finish(&result);
}
