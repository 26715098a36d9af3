// SPDX-License-Identifier: Apache-2.0
//
// A program with a pool of its own: `hanare run` leaves its memory alone, if it may still do so.
//
//   own_pool [early|late]     whether the pool comes before the program's other memory
#include "far.h"

#include "hanare/hanare.h"

static void sum_both(const uint64_t* heap, const uint64_t* region, size_t words) {
    uint64_t sum = 0;
    for (size_t i = 0; i < words; ++i) sum += heap[i] + region[i];
    CHECK(sum == words * (words - 1));
}

static uint64_t* filled(size_t words) {
    uint64_t* const memory = malloc(words * sizeof *memory);
    CHECK(memory != NULL);
    for (size_t i = 0; i < words; ++i) memory[i] = i;
    return memory;
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    const int is_late = strcmp(arguments[1], "late") == 0;
    const size_t words = 4 * MIB;
    uint64_t* heap = is_late ? filled(words) : NULL;
    hanare_pool_options options = {.struct_size = sizeof options, .local_bytes = 4 * MIB};
    hanare_pool* pool = NULL;
    if (hanare_pool_open(&options, &pool) != HANARE_STATUS_OK) {
        char text[300];
        hanare_last_error(text, sizeof text);
        puts(text);
        return 1;
    }
    if (!is_late) heap = filled(words);
    void* memory = NULL;
    CHECK(hanare_alloc(pool, words * sizeof *heap, NULL, &memory) == HANARE_STATUS_OK);
    uint64_t* const region = memory;
    for (size_t i = 0; i < words; ++i) region[i] = heap[i];
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_BLOCK, &all, &before) == 0);
    for (size_t i = 0; i < words; ++i) CHECK(heap[i] == i);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    sum_both(heap, region, words);
    CHECK(hanare_pool_close(pool) == HANARE_STATUS_OK);
    puts("both are right");
    return 0;
}
