// SPDX-License-Identifier: Apache-2.0
//
// Passes through an array of which a quarter of each block is used, in the order of the addresses:
// what is used fits in the budget, the blocks that it lies in do not.  Then the array moves as it
// is, is closed in part, and is used at random by groups of pages, some of which are written; a
// child goes on with what it finds.
#include "far.h"

#include <sys/wait.h>

enum { kUsed = 4, kEvery = 16, kPasses = 60, kGroups = 10000 };
static const size_t kBytes = 48 * MIB;

static uint8_t* array;
static size_t pages;
static uint32_t* expected;  // of each page: how often it was written

static uint32_t* word(size_t page) { return (uint32_t*)(array + page * PAGE + 16); }
static uint32_t* mark(size_t page) { return (uint32_t*)(array + page * PAGE + PAGE - 4); }

static void check_all(void) {
    for (size_t page = 0; page < pages; page++) {
        CHECK(*word(page) == expected[page]);
        CHECK(*mark(page) == (uint32_t)page);
    }
}

static void pass(void) {
    for (size_t page = 0; page < pages; page++) {
        if (page % kEvery >= kUsed) continue;
        CHECK(*word(page) == expected[page]);
        CHECK(*mark(page) == (uint32_t)page);
    }
}

// Of four pages beside each other most are read, and one in three is written.
static void use_groups(uint64_t seed, int groups) {
    for (int i = 0; i < groups; i++) {
        const size_t first = below(&seed, pages / 4) * 4;
        for (size_t k = 0; k < 4; k++) {
            const size_t page = first + (k + (size_t)i) % 4;
            const uint64_t what = next_random(&seed) % 6;
            if (what == 0) continue;
            CHECK(*mark(page) == (uint32_t)page);
            if (what <= 2) *word(page) = ++expected[page];
            CHECK(*word(page) == expected[page]);
        }
    }
}

int main(void) {
    pages = kBytes / PAGE;
    expected = (uint32_t*)calloc(pages, sizeof *expected);
    array = (uint8_t*)far_memory(kBytes);
    CHECK(expected != NULL);
    for (size_t page = 0; page < pages; page++) {
        *word(page) = expected[page] = (uint32_t)(page * 7);
        *mark(page) = (uint32_t)page;
    }
    for (int i = 0; i < kPasses; i++) pass();

    array = (uint8_t*)mremap(array, kBytes, 2 * kBytes, MREMAP_MAYMOVE);
    CHECK(array != MAP_FAILED);
    pass();
    CHECK(mprotect(array + 5 * MIB, MIB, PROT_NONE) == 0);
    CHECK(mprotect(array + 5 * MIB, MIB, PROT_READ | PROT_WRITE) == 0);
    array = (uint8_t*)mremap(array, 2 * kBytes, kBytes, 0);
    CHECK(array != MAP_FAILED);
    check_all();

    use_groups(1, kGroups);
    check_all();
    const pid_t child = fork();
    CHECK(child >= 0);
    use_groups(child == 0 ? 2 : 3, kGroups / 10);
    check_all();
    if (child == 0) _exit(0);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    puts("done");
    return 0;
}
