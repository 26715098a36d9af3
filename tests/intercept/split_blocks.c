// SPDX-License-Identifier: Apache-2.0
//
// Blocks that lie in several mappings of the kernel, since a file was mapped over some of their
// pages for a while, in the child of a fork, too.  They are read at random, beyond the budget.
#include "far.h"

#include <fcntl.h>
#include <sys/wait.h>

enum { kBlockPages = 64, kFirst = 21, kCovered = 13, kReads = 60000 };
static const size_t kBytes = 64 * MIB;

static uint8_t* array;
static uint64_t seed = 5;

static void cover_and_uncover(int file, size_t block) {
    uint8_t* const place = array + (block * kBlockPages + kFirst) * PAGE;
    const size_t bytes = kCovered * PAGE;
    CHECK(mmap(place, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == place);
    CHECK(place[5] == 'f');
    CHECK(mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
               0) == place);
}

static void use(int file, uint64_t salt) {
    const size_t pages = kBytes / PAGE;
    for (size_t block = 0; block < pages / kBlockPages; block += 3) cover_and_uncover(file, block);
    for (size_t page = 0; page < pages; page++) {
        *(uint64_t*)(array + page * PAGE + 16) = page * salt;
    }
    for (int i = 0; i < kReads; i++) {
        const size_t page = next_random(&seed) % pages;
        CHECK(*(uint64_t*)(array + page * PAGE + 16) == page * salt);
    }
}

int main(void) {
    array = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(array != MAP_FAILED);
    const int file = open("covers", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0);
    static uint8_t page[PAGE];
    memset(page, 'f', sizeof page);
    for (int i = 0; i < kCovered; i++) CHECK(write(file, page, sizeof page) == sizeof page);
    use(file, 3);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        use(file, 7);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    const size_t pages = kBytes / PAGE;
    for (size_t at = 0; at < pages; at++) CHECK(*(uint64_t*)(array + at * PAGE + 16) == at * 3);
    puts("done");
    return 0;
}
