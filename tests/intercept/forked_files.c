// SPDX-License-Identifier: Apache-2.0
//
// fork while files, and memory that only the kernel can map, lie in the middle of far memory: the
// child finds all of it, may unmap it and map something else there, and forks in its turn.
#include "far.h"

#include <fcntl.h>
#include <sys/wait.h>

#define DATA_BYTES (40 * MIB)
#define FILE_PAGES 40
#define PLACES 4

static unsigned char* data;
static unsigned char* reserved;
// In pages from the start of `data`: whole blocks, parts of blocks, one page.
static const size_t place_page[PLACES] = {64, 1000, 2056, 5003};
static const size_t place_pages[PLACES] = {32, 40, 8, 1};
static int file;

static unsigned char* place_of(int place) { return data + place_page[place] * PAGE; }

static void map_file(int place) {
    const int shared = place % 2;
    unsigned char* at = place_of(place);
    CHECK(mmap(at, place_pages[place] * PAGE, PROT_READ | PROT_WRITE,
               MAP_FIXED | (shared ? MAP_SHARED : MAP_PRIVATE), file, 0) == at);
}

// Every page begins with its number, but for those of the file.
static void put_numbers(void) {
    for (size_t page = 0; page < DATA_BYTES / PAGE; ++page) memcpy(data + page * PAGE, &page, 8);
}

static int is_file_page(size_t page) {
    for (int i = 0; i < PLACES; ++i) {
        if (page >= place_page[i] && page < place_page[i] + place_pages[i]) return 1;
    }
    return 0;
}

static uint64_t check_all(int with_files) {
    uint64_t digest = 0;
    for (size_t page = 0; page < DATA_BYTES / PAGE; ++page) {
        uint64_t number;
        memcpy(&number, data + page * PAGE, 8);
        if (!is_file_page(page)) CHECK(number == page);
    }
    for (int i = 0; with_files && i < PLACES; ++i) {
        const unsigned char* at = place_of(i);
        for (size_t page = 0; page < place_pages[i]; ++page) {
            CHECK(holds(at + page * PAGE, PAGE, page + 7));
        }
        digest = mix(digest, digest_of(at, PAGE));
    }
    for (size_t at = 0; at < MIB; at += PAGE) CHECK(reserved[at] == 0);
    return digest;
}

static void expect(pid_t child, int wanted) {
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == wanted);
}

static void use_child(int generation) {
    check_all(1);
    if (generation < 2) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            use_child(generation + 1);
            _exit(generation + 1);
        }
        expect(child, generation + 1);
    }
    // Instead of the files, memory; and more of it where there was none before.
    for (int i = 0; i < PLACES; ++i) {
        unsigned char* at = place_of(i);
        const size_t bytes = place_pages[i] * PAGE;
        CHECK(munmap(at, bytes) == 0);
        CHECK(mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                   0) == at);
        for (size_t byte = 0; byte < bytes; byte += 512) CHECK(at[byte] == 0);
        fill(at, bytes, (uint64_t)i);
    }
    unsigned char* more = (unsigned char*)far_memory(24 * MIB);
    fill(more, 24 * MIB, 5);
    check_all(0);
    for (int i = 0; i < PLACES; ++i) CHECK(holds(place_of(i), place_pages[i] * PAGE, (uint64_t)i));
    CHECK(holds(more, 24 * MIB, 5));
}

int main(void) {
    data = (unsigned char*)far_memory(DATA_BYTES);
    put_numbers();
    file = open("forked", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0);
    for (size_t page = 0; page < FILE_PAGES; ++page) {
        unsigned char content[PAGE];
        fill(content, PAGE, page + 7);
        CHECK(pwrite(file, content, PAGE, (off_t)(page * PAGE)) == (ssize_t)PAGE);
    }
    for (int i = 0; i < PLACES; ++i) map_file(i);
    // Nobody has written to it: its pages are still missing when the child looks at them.
    reserved = (unsigned char*)mmap(NULL, 4 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(reserved != MAP_FAILED && mprotect(reserved, MIB, PROT_READ) == 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        use_child(1);
        _exit(1);
    }
    expect(child, 1);
    const uint64_t digest = check_all(1);
    CHECK(close(file) == 0 && unlink("forked") == 0);
    printf("forked_files %016llx\n", (unsigned long long)digest);
    return 0;
}
