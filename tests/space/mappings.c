/* SPDX-License-Identifier: Apache-2.0
 *
 * mmap, munmap and mremap as the kernel answers them, in a task: in holes, at fixed places, growing
 * in place and elsewhere, without an effect where they fail.  Prints "right". */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tasks.h"

static char *map(void *place, size_t bytes, int flags) {
    return mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

int main(void) {
    enum { PAGE = 4096 };
    /* Where there is a hole, another mapping may go, and nothing else is overwritten. */
    char *first = map(NULL, 16 * PAGE, 0);
    CHECK(first != MAP_FAILED);
    memset(first, 7, 16 * PAGE);
    CHECK(munmap(first + 4 * PAGE, 4 * PAGE) == 0);
    unsigned char *others[64];
    for (int i = 0; i < 64; i++) {
        others[i] = (unsigned char *)map(NULL, (size_t)(1 + i % 5) * PAGE, 0);
        CHECK((void *)others[i] != MAP_FAILED);
        CHECK(others[i][0] == 0);
        memset(others[i], 100 + i, (size_t)(1 + i % 5) * PAGE);
    }
    for (int i = 0; i < 4 * PAGE; i++) CHECK(first[i] == 7 && first[8 * PAGE + i] == 7);
    for (int i = 0; i < 64; i++) CHECK(others[i][0] == 100 + i);

    /* Fixed places: over what is there, and not. */
    CHECK(map(first, PAGE, MAP_FIXED) == first && first[0] == 0 && first[PAGE] == 7);
    CHECK(map(first, PAGE, MAP_FIXED_NOREPLACE) == MAP_FAILED && errno == EEXIST);
    CHECK(map(NULL, 0, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(map(NULL, SIZE_MAX - PAGE, 0) == MAP_FAILED && errno == ENOMEM);
    /* More than a partition has. */
    char *vast = map(NULL, (size_t)1 << 40, MAP_NORESERVE);
    CHECK(vast != MAP_FAILED && (vast[(size_t)1 << 39] = 1) && munmap(vast, (size_t)1 << 40) == 0);
    CHECK(munmap(first + 1, PAGE) == -1 && errno == EINVAL);

    /* Growing, also where something is in the way; shrinking; moving to a place of our own. */
    char *grown = map(NULL, PAGE, 0);
    const char *way = map(grown + PAGE, PAGE, MAP_FIXED_NOREPLACE);
    CHECK(way == grown + PAGE || errno == EEXIST);
    memset(grown, 9, PAGE);
    CHECK(mremap(grown, PAGE, 3 * PAGE, 0) == MAP_FAILED && errno == ENOMEM);
    char *moved = mremap(grown, PAGE, 64 * PAGE, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED && moved[0] == 9 && moved[PAGE] == 0);
    CHECK(mremap(moved, 64 * PAGE, 2 * PAGE, 0) == moved);
    char *target = map(NULL, 2 * PAGE, 0);
    CHECK(mremap(moved, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target) == target);
    CHECK(target[0] == 9);
    /* Both stay: the old place is empty. */
    char *left = mremap(target, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
    CHECK(left != MAP_FAILED && left != target && left[0] == 9 && target[0] == 0);
    CHECK(mremap(left, PAGE, 0, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL);

    /* Large ones may be made of large pages. */
    char *large = map(NULL, 4 << 20, 0);
    CHECK(((uintptr_t)large & ((2 << 20) - 1)) == 0);

    /* What is given back can be had again, for ever. */
    for (int i = 0; i < 20000; i++) {
        char *again = map(NULL, 64 << 20, MAP_NORESERVE);
        CHECK(again != MAP_FAILED);
        again[0] = 1;
        CHECK(munmap(again, 64 << 20) == 0);
    }
    /* There is no heap that grows; allocators do without. */
    CHECK(sbrk(PAGE) == (void *)-1 && errno == ENOMEM && sbrk(0) != (void *)-1);
    puts("right");
    return 0;
}
