// SPDX-License-Identifier: Apache-2.0
//
// IS on shared memory: the shared counts are in as many blocks of pages as there are processes, or
// fewer, with a lock each.  A process adds its counts block by block, beginning with another one
// than the others, and reads all after the barrier.  Three arrays take turns, so that one barrier
// is enough: while one is added to, the block's owner clears it in the next one, which all have
// read before the barrier of the last ranking.
#include "form_tmk.h"
#include "is.h"

enum { kArrays = 3, kCleared = 1, kAdded };

struct blocks {
    unsigned count;
    long values;  // in all
    long unit;    // blocks begin at multiples of it
};

static struct blocks blocks_of(const struct is *is) {
    struct blocks blocks = {form_processes, is_values(is), Tmk_page_size / (long)sizeof(int)};
    if (blocks.unit > blocks.values) blocks.unit = blocks.values;
    const long units = blocks.values / blocks.unit;
    if (blocks.count > units) blocks.count = (unsigned)units;
    return blocks;
}

static struct share block_values(const struct blocks *blocks, unsigned block) {
    struct share share = share_of(blocks->values / blocks->unit, block, blocks->count);
    share.begin *= blocks->unit;
    share.end *= blocks->unit;
    return share;
}

static void clear_own_block(const struct blocks *blocks, int *shared) {
    if (form_process >= blocks->count) return;
    const struct share own = block_values(blocks, form_process);
    memset(shared + own.begin, 0, (size_t)(own.end - own.begin) * sizeof(int));
}

static void add_counts(const struct blocks *blocks, const int *counts, int *shared) {
    for (unsigned step = 0; step < blocks->count; ++step) {
        const unsigned block = (form_process + step) % blocks->count;
        const struct share share = block_values(blocks, block);
        Tmk_lock_acquire(FORM_LOCKS_MANY + block);
        for (long value = share.begin; value < share.end; ++value) shared[value] += counts[value];
        Tmk_lock_release(FORM_LOCKS_MANY + block);
    }
}

struct is_outcome is_run(const struct is *is, const struct is_part *part) {
    const struct blocks blocks = blocks_of(is);
    const size_t bytes = (size_t)blocks.values * sizeof(int);
    int *shared[kArrays];
    for (int array = 0; array < kArrays; ++array) {
        shared[array] = form_share(bytes);
        // So that the owner is the first to touch it.
        if (dsm_init_by != 0) clear_own_block(&blocks, shared[array]);
        if (dsm_init_by == 0 && form_process == 0) memset(shared[array], 0, bytes);
    }
    int *const all_counts = dsm_allocate((size_t)blocks.values, sizeof(int));
    Tmk_barrier(kCleared);

    struct is_outcome outcome = {0};
    const double start = dsm_start();
    for (long i = 1; i <= is->iterations; ++i) {
        is_count(is, part, i);
        add_counts(&blocks, part->counts, shared[i % kArrays]);
        clear_own_block(&blocks, shared[(i + 1) % kArrays]);
        Tmk_barrier(kAdded);
        memcpy(all_counts, shared[i % kArrays], bytes);
        is_rank(is, part, all_counts);
        outcome.known_met += is_known_ranks_met(is, part, i);
    }
    outcome.seconds = dsm_stop(start);
    free(all_counts);
    return outcome;
}
