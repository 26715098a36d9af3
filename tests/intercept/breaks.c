// SPDX-License-Identifier: Apache-2.0
//
// The program's break: grows and shrinks at random by any number of bytes; what comes back is
// zeros. A reserve that becomes usable in steps, as the arenas of allocators do it. Buffers that
// begin in what was the heap before anything was far memory.
#include "far.h"

#include <fcntl.h>

#define BYTES_MAX (40 * MIB)
#define EARLY_BYTES (300 * (size_t)1000)

// The break is this program's alone until it has ended: nothing here allocates.
static uint64_t move_break(void) {
    uint64_t random = 5;
    unsigned char* const base = (unsigned char*)sbrk(0);
    size_t bytes = 0;
    size_t written = 0;  // [0, written) holds a pattern
    uint64_t digest = 0;
    for (int i = 0; i < 150 * work_factor(); ++i) {
        const size_t wanted = i % 10 == 9 ? below(&random, 100000) : below(&random, BYTES_MAX);
        CHECK(sbrk((intptr_t)wanted - (intptr_t)bytes) == base + bytes);
        CHECK(sbrk(0) == base + wanted);
        if (wanted < written) written = wanted;
        // Pages that went are zeros; the rest of the last one is as it was.
        const uintptr_t kept = ((uintptr_t)base + bytes + PAGE - 1) / PAGE * PAGE;
        const size_t begin = wanted > bytes ? (size_t)(kept - (uintptr_t)base) : wanted;
        for (size_t at = begin; at < wanted; at += 97) CHECK(base[at] == 0);
        for (size_t at = 0; at < written; at += 501) {
            CHECK(base[at] == (unsigned char)(at * 2654435761u >> 20));
        }
        const size_t from = written;
        for (size_t at = from; at < wanted; ++at) {
            base[at] = (unsigned char)(at * 2654435761u >> 20);
        }
        written = wanted;
        bytes = wanted;
        digest = mix(digest, wanted);
    }
    CHECK(brk(base) == 0);
    CHECK(sbrk((intptr_t)MIB) == base);
    for (size_t at = PAGE; at < MIB; ++at) CHECK(base[at] == 0);
    CHECK(brk(base) == 0);
    return digest;
}

// System calls on memory from `early` on, the end of which is not there.
static uint64_t reach_from(unsigned char* early) {
    const size_t later = 4 * MIB;
    CHECK(sbrk((intptr_t)later) == early + EARLY_BYTES);
    const int file = open(".", O_TMPFILE | O_RDWR, 0600);
    CHECK(file >= 0);
    uint64_t digest = 0;
    for (size_t in_front = 1; in_front < EARLY_BYTES; in_front = in_front * 3 + 1) {
        unsigned char* const begin = early + EARLY_BYTES - in_front;
        const size_t bytes = in_front + 2 * BLOCK;
        fill(begin, bytes, in_front);
        sweep();
        CHECK(pwrite(file, begin, bytes, 0) == (ssize_t)bytes);
        memset(begin, 0, bytes);
        sweep();
        CHECK(pread(file, begin, bytes, 0) == (ssize_t)bytes);
        CHECK(holds(begin, bytes, in_front));
        digest = mix(digest, digest_of(begin, bytes));
    }
    close(file);
    CHECK(brk(early + EARLY_BYTES) == 0);
    return digest;
}

static uint64_t use_reserve(void) {
    const size_t reserved = 256 * MIB;
    unsigned char* base = (unsigned char*)mmap(NULL, reserved, PROT_NONE,
                                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(base != MAP_FAILED);
    size_t usable = 0;
    uint64_t random = 8;
    while (usable < 60 * MIB) {
        const size_t more = (1 + below(&random, 200)) * PAGE;
        CHECK(mprotect(base + usable, more, PROT_READ | PROT_WRITE) == 0);
        for (size_t at = usable; at < usable + more; at += PAGE) CHECK(base[at] == 0);
        fill(base + usable, more, usable);
        if (below(&random, 8) == 0) {
            // As an allocator that gives the end back.
            CHECK(mmap(base + usable, more, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                       0) == base + usable);
            continue;
        }
        usable += more;
    }
    const uint64_t digest = digest_of(base, usable);
    CHECK(munmap(base, reserved) == 0);
    return digest;
}

int main(void) {
    static char output[4096];
    setvbuf(stdout, output, _IOFBF, sizeof output);
    unsigned char* const early = (unsigned char*)sbrk((intptr_t)EARLY_BYTES);
    prepare();  // so that the break is far memory, too
    const uint64_t first = reach_from(early);
    const uint64_t second = move_break();
    const uint64_t third = use_reserve();
    printf("breaks %016llx %016llx %016llx\n", (unsigned long long)first,
           (unsigned long long)second, (unsigned long long)third);
    return 0;
}
