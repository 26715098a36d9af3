/* SPDX-License-Identifier: Apache-2.0
 *
 * moves ROUNDS: in each block every task has a word of its own, and goes about in a few blocks at
 * random, reads its words and changes them, while all others do the same: homes move to who writes,
 * and who had them reads and writes on.  Each finds its own words as it left them, and after a
 * barrier all words are as the tasks have left them.  Prints "right" in each task. */
#include "task.h"

enum { kBlocks = 8, kSteps = 64, kBlockWords = 4096 / sizeof(uint64_t), kTasksMax = 64 };

static uint64_t draw(uint64_t *state) {
    uint64_t x = *state += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static volatile uint64_t *word(uint64_t round, uint64_t block, uint32_t task) {
    return shared + (round * kBlocks + block) * kBlockWords + task * 8;
}

static void equal(uint64_t wanted, uint64_t is, uint64_t round, uint64_t block, uint32_t task) {
    if (wanted == is) return;
    fprintf(stderr, "task %u, round %llu, block %llu, word of task %u: %llx, not %llx\n", rank,
            (unsigned long long)round, (unsigned long long)block, task, (unsigned long long)is,
            (unsigned long long)wanted);
    exit(1);
}

int main(int argc, char **argv) {
    const uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 8;
    begin();
    if (size > kTasksMax) return 2;
    /* New memory in each round: a home moves a few times only. */
    get_shared(rounds * kBlocks * kBlockWords * sizeof *shared);
    static uint64_t is[kTasksMax][kBlocks];
    for (uint64_t round = 0; round < rounds; ++round) {
        for (uint32_t task = 0; task < size; ++task) {
            uint64_t state = round * kTasksMax + task;
            for (uint64_t block = 0; block < kBlocks; ++block) is[task][block] = 0;
            for (uint64_t step = 1; step <= kSteps; ++step) {
                const uint64_t drawn = draw(&state);
                const uint64_t block = drawn % kBlocks;
                volatile uint64_t *const here = word(round, block, task);
                if (task == rank) equal(is[task][block], *here, round, block, task);
                if (drawn >> 32 & 1) {
                    is[task][block] = step << 8 | (task + 1);
                    if (task == rank) *here = is[task][block];
                }
            }
        }
        must(hanare_dsm_barrier(dsm, 1), "barrier");
        for (uint32_t task = 0; task < size; ++task) {
            for (uint64_t block = 0; block < kBlocks; ++block) {
                equal(is[task][block], *word(round, block, task), round, block, task);
            }
        }
    }
    must(hanare_dsm_finish(dsm), "finish");
    printf("right\n");
    return 0;
}
