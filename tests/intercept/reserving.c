// SPDX-License-Identifier: Apache-2.0
//
// Run times that ask for more addresses than there is memory: for the highest break that they can
// have, from what nobody gives downwards (GCL), and for a tebibyte and a bit, of which they cut off
// what is not aligned, and use and give back pieces (GHC); for addresses that mean something, and
// no others (ZGC).
#include "far.h"

#define RESERVED ((size_t)1 << 40)
#define PIECE ((size_t)1 << 20)
#define PIECES 60

static void search_break(void) {
    unsigned char* const base = (unsigned char*)sbrk(0);
    size_t bytes = (size_t)1 << 62;
    while (brk(base + bytes) != 0) bytes /= 2;
    CHECK(bytes > MIB);
    base[bytes - 1] = 1;
    CHECK(brk(base) == 0);
}

static unsigned char* reserve(void) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    unsigned char* begin = mmap((void*)0x4200000000, RESERVED + PIECE, PROT_NONE, flags, -1, 0);
    CHECK(begin != MAP_FAILED);
    const size_t before = (PIECE - (uintptr_t)begin % PIECE) % PIECE;
    if (before > 0) CHECK(munmap(begin, before) == 0);
    CHECK(munmap(begin + before + RESERVED, PIECE - before) == 0);
    return begin + before;
}

static void reserve_where_it_must_be(void) {
    const size_t bytes = (size_t)48 << 30;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    for (uintptr_t wanted = (uintptr_t)1 << 42;; wanted += bytes) {
        CHECK(wanted < (uintptr_t)1 << 43);
        void* const begin = mmap((void*)wanted, bytes, PROT_NONE, flags, -1, 0);
        CHECK(begin != MAP_FAILED);
        if ((uintptr_t)begin == wanted) break;
        CHECK(munmap(begin, bytes) == 0);
    }
}

static void use(unsigned char* piece, uint64_t tag) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    CHECK(mmap(piece, PIECE, PROT_READ | PROT_WRITE, flags, -1, 0) == piece);
    for (size_t page = 0; page < PIECE; page += 4096) {
        uint64_t* const words = (uint64_t*)(piece + page);
        CHECK(words[0] == 0 && words[511] == 0);
        words[0] = words[511] = tag + page;
    }
}

static void check(const unsigned char* piece, uint64_t tag) {
    for (size_t page = 0; page < PIECE; page += 4096) {
        const uint64_t* const words = (const uint64_t*)(piece + page);
        CHECK(words[0] == tag + page && words[511] == tag + page);
    }
}

// Where it would rather be, or anywhere (Go, and Java's heap of compressed addresses).
static unsigned char* reserve_by_wish(void) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    for (uintptr_t wanted = 0xc000000000; wanted < 0xc100000000; wanted += (uintptr_t)1 << 30) {
        unsigned char* const begin = mmap((void*)wanted, PIECES * PIECE, PROT_NONE, flags, -1, 0);
        CHECK(begin != MAP_FAILED);
        if ((uintptr_t)begin == wanted) return begin;
        CHECK(munmap(begin, PIECES * PIECE) == 0);
    }
    unsigned char* const begin = mmap(NULL, PIECES * PIECE, PROT_NONE, flags, -1, 0);
    CHECK(begin != MAP_FAILED);
    return begin;
}

int main(int argc, char** argv) {
    (void)argv;
    if (argc > 1) {
        unsigned char* const heap = reserve_by_wish();
        for (uint64_t i = 0; i < PIECES; ++i) use(heap + i * PIECE, i << 32);
        for (uint64_t i = 0; i < PIECES; ++i) check(heap + i * PIECE, i << 32);
        puts("reserved by wish");
        return 0;
    }
    search_break();
    unsigned char* const memory = reserve();
    unsigned char* const last = memory + RESERVED - PIECE;
    for (uint64_t i = 0; i < PIECES; ++i) use(memory + i * PIECE, i << 32);
    use(last, 99);
    for (uint64_t i = 0; i < PIECES; ++i) check(memory + i * PIECE, i << 32);
    // Back to what is only reserved, and anew.
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    for (uint64_t i = 0; i < PIECES; i += 2) {
        CHECK(mmap(memory + i * PIECE, PIECE, PROT_NONE, flags, -1, 0) == memory + i * PIECE);
    }
    for (uint64_t i = 0; i < PIECES; i += 2) use(memory + i * PIECE, i << 40);
    for (uint64_t i = 0; i < PIECES; ++i) check(memory + i * PIECE, i << (i % 2 == 0 ? 40 : 32));
    check(last, 99);
    CHECK(munmap(memory, RESERVED) == 0);
    reserve_where_it_must_be();
    puts("reserved, used and given back");
    return 0;
}
