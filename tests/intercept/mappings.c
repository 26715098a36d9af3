// SPDX-License-Identifier: Apache-2.0
//
// mmap, munmap, mprotect, mremap and madvise at random on anonymous memory, against a model of what
// each page must hold and whether it can be accessed.  Holes are filled before anything else is
// mapped: the system may put something else there.
#include "far.h"

#include <fcntl.h>
#include <setjmp.h>

#define MAPS 4
#define PAGES 3072
#define MOVED_MAPS 6
#define MOVED_PAGES 700
#define GUARDED_MAX 40

// In the random part an access must fault only where a whole block is unmapped at once: pages that
// are closed one by one can be accessible with the rest of their block.  check_pages() is exact.
#define BLOCK_PAGES 64

enum access { kNone, kRead, kReadWrite };

struct page {
    uint32_t tag;  // 0: zeros
    uint8_t access;
};

static unsigned char* map[MAPS];
static struct page page_of[MAPS][PAGES];
static unsigned char* moved[MOVED_MAPS];
static size_t moved_pages[MOVED_MAPS];
static uint32_t moved_tag[MOVED_MAPS][4 * MOVED_PAGES];
static uint64_t state = 4711;
static uint32_t last_tag = 1;
static uint32_t last_moved_tag = 1;
static uint64_t faults;
static uint64_t digest;

static sigjmp_buf back;
static void* volatile fault_address;
static volatile int fault_signal;

static void catch_fault(int number, siginfo_t* info, void* context) {
    (void)context;
    fault_signal = number;
    fault_address = info->si_addr;
    siglongjmp(back, 1);
}

// The access ends in SIGSEGV at that address.
static void must_fault_at(unsigned char* at, int write, int line) {
    fault_signal = 0;
    if (sigsetjmp(back, 1) == 0) {
        if (write) {
            *(volatile unsigned char*)at = 1;
        } else {
            (void)*(volatile unsigned char*)at;
        }
        fail_check(__FILE__, line, "must fault", 0);
    }
    CHECK(fault_signal == SIGSEGV);
    CHECK(fault_address == at);
    ++faults;
}

#define must_fault(at, write) must_fault_at(at, write, __LINE__)

static void write_page(unsigned char* at, uint32_t tag) {
    uint64_t* words = (uint64_t*)at;
    for (size_t i = 0; i < PAGE / 8; ++i) words[i] = (uint64_t)tag * 0x9e3779b97f4a7c15u + i;
}

static int page_holds(const unsigned char* at, uint32_t tag) {
    const uint64_t* words = (const uint64_t*)at;
    for (size_t i = 0; i < PAGE / 8; ++i) {
        if (words[i] != (tag == 0 ? 0 : (uint64_t)tag * 0x9e3779b97f4a7c15u + i)) return 0;
    }
    return 1;
}

static void verify(int which, size_t page) {
    unsigned char* at = map[which] + page * PAGE;
    const struct page* model = &page_of[which][page];
    if (model->access == kNone) return;
    CHECK(page_holds(at, model->tag));
    digest = mix(digest, model->tag);
    if (model->access == kRead && below(&state, 4) == 0) must_fault(at + 8, 1);
}

// Sizes of all orders, often at the borders of blocks.
static size_t run_length(size_t most) {
    static const size_t order[] = {1, 3, 16, 17, 64, 400};
    size_t pages = 1 + below(&state, order[below(&state, 6)]);
    if (below(&state, 3) == 0) pages = (pages + 15) / 16 * 16;
    return pages < most ? pages : most;
}

static const int protection_of[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE};

static void map_over(int which, size_t begin, size_t pages, enum access access) {
    unsigned char* at = map[which] + begin * PAGE;
    CHECK(mmap(at, pages * PAGE, protection_of[access], MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
               0) == at);
    for (size_t page = begin; page < begin + pages; ++page) {
        page_of[which][page] = (struct page){0, (uint8_t)access};
    }
}

static void protect(int which, size_t begin, size_t pages, enum access access) {
    CHECK(mprotect(map[which] + begin * PAGE, pages * PAGE, protection_of[access]) == 0);
    for (size_t page = begin; page < begin + pages; ++page) {
        struct page* model = &page_of[which][page];
        model->access = (uint8_t)access;
    }
}

static void write_run(int which, size_t begin, size_t pages) {
    for (size_t page = begin; page < begin + pages; ++page) {
        struct page* model = &page_of[which][page];
        if (model->access != kReadWrite) continue;
        model->tag = ++last_tag;
        write_page(map[which] + page * PAGE, model->tag);
    }
}

static void forget_run(int which, size_t begin, size_t pages, int advice) {
    CHECK(madvise(map[which] + begin * PAGE, pages * PAGE, advice) == 0);
    for (size_t page = begin; page < begin + pages; ++page) {
        struct page* model = &page_of[which][page];
        if (advice == MADV_DONTNEED) {
            model->tag = 0;
            continue;
        }
        // Gone, or still there; from the next write on it stays.
        if (model->access == kNone) CHECK(!"not freed by this test");
        unsigned char* at = map[which] + page * PAGE;
        CHECK(page_holds(at, model->tag) || page_holds(at, 0));
        if (model->access == kReadWrite) {
            model->tag = ++last_tag;
            write_page(at, model->tag);
        }
    }
}

// What it held comes back.
static void page_out_run(int which, size_t begin, size_t pages) {
    CHECK(madvise(map[which] + begin * PAGE, pages * PAGE, MADV_PAGEOUT) == 0);
    for (size_t page = begin; page < begin + pages; ++page) verify(which, page);
}

static void unmap_and_fill(int which, size_t begin, size_t pages) {
    unsigned char* at = map[which] + begin * PAGE;
    CHECK(munmap(at, pages * PAGE) == 0);
    const size_t first_block = (begin + BLOCK_PAGES - 1) / BLOCK_PAGES * BLOCK_PAGES;
    if (first_block + BLOCK_PAGES <= begin + pages) {
        must_fault(map[which] + first_block * PAGE + below(&state, PAGE), (int)below(&state, 2));
    }
    if (begin > 0) verify(which, begin - 1);
    if (begin + pages < PAGES) verify(which, begin + pages);
    unsigned char mapped[400 + 16];
    CHECK(mincore(at, pages * PAGE, mapped) == -1 && errno == ENOMEM);
    const int tells = below(&state, 2) == 0;
    if (tells) {
        CHECK(mmap(at, pages * PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == at);
        CHECK(mmap(at, PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED);
        CHECK(errno == EEXIST);
    }
    map_over(which, begin, pages, kReadWrite);
}

// A file lies in the middle of anonymous memory for a while.
static void map_file(int file, int which, size_t begin, size_t pages) {
    unsigned char* at = map[which] + begin * PAGE;
    const int shared = (int)below(&state, 2);
    if (pages > 256) pages = 256;
    for (size_t i = begin; i < begin + pages; ++i) page_of[which][i] = (struct page){0, kReadWrite};
    CHECK(mmap(at, pages * PAGE, PROT_READ | PROT_WRITE,
               MAP_FIXED | (shared ? MAP_SHARED : MAP_PRIVATE), file, (off_t)PAGE) == at);
    const size_t page = below(&state, pages);
    CHECK(page_holds(at + page * PAGE, (uint32_t)(page + 2)));
    write_page(at + page * PAGE, 999999);
    static unsigned char content[PAGE];
    CHECK(pread(file, content, PAGE, (off_t)((page + 1) * PAGE)) == (ssize_t)PAGE);
    CHECK(page_holds(content, shared ? 999999 : (uint32_t)(page + 2)));
    write_page(content, (uint32_t)(page + 2));
    CHECK(pwrite(file, content, PAGE, (off_t)((page + 1) * PAGE)) == (ssize_t)PAGE);
    if (begin > 0) verify(which, begin - 1);
    if (begin + pages < PAGES) verify(which, begin + pages);
    CHECK(munmap(at, pages * PAGE) == 0);
    map_over(which, begin, pages, kReadWrite);
}

// Not accessible for a moment, or read-only; what it holds is kept.
static void protect_for_a_while(int which, size_t begin, size_t pages) {
    if (pages > GUARDED_MAX) pages = GUARDED_MAX;
    struct page before[GUARDED_MAX];
    memcpy(before, &page_of[which][begin], pages * sizeof *before);
    protect(which, begin, pages, below(&state, 2) == 0 ? kNone : kRead);
    for (int i = 0; i < 3; ++i) verify(which, begin + below(&state, pages));
    protect(which, begin, pages, kReadWrite);
    for (size_t page = begin; page < begin + pages; ++page) verify(which, page);
}

static void change_moved(void) {
    const size_t which = below(&state, MOVED_MAPS);
    unsigned char** at = &moved[which];
    size_t* pages = &moved_pages[which];
    uint32_t* tags = moved_tag[which];
    if (*at == NULL) {
        *pages = 32 + below(&state, MOVED_PAGES);
        *at = (unsigned char*)far_memory(*pages * PAGE);
        memset(tags, 0, *pages * sizeof *tags);
    }
    for (int i = 0; i < 30; ++i) {
        const size_t page = below(&state, *pages);
        tags[page] = ++last_moved_tag;
        write_page(*at + page * PAGE, tags[page]);
    }
    const size_t wanted = 1 + below(&state, 3 * MOVED_PAGES);
    unsigned char* result;
    const size_t how = below(&state, 4);
    if (how == 0) {
        unsigned char* place = (unsigned char*)far_memory(wanted * PAGE);
        result = (unsigned char*)mremap(*at, *pages * PAGE, wanted * PAGE,
                                        MREMAP_MAYMOVE | MREMAP_FIXED, place);
        CHECK(result == place);
    } else if (how == 1) {
        result = (unsigned char*)mremap(*at, *pages * PAGE, wanted * PAGE, 0);
        if (result == MAP_FAILED) {
            CHECK(errno == ENOMEM && wanted > *pages);
            return;
        }
        CHECK(result == *at);
    } else {
        result = (unsigned char*)mremap(*at, *pages * PAGE, wanted * PAGE, MREMAP_MAYMOVE);
    }
    CHECK(result != MAP_FAILED);
    if (result != *at && *pages >= BLOCK_PAGES) {
        must_fault(*at, 0);
        --faults;
    }
    for (size_t page = *pages; page < wanted; ++page) tags[page] = 0;
    *at = result;
    *pages = wanted;
    for (size_t page = 0; page < wanted; ++page) {
        CHECK(page_holds(result + page * PAGE, tags[page]));
    }
    if (below(&state, 10) == 0) {
        CHECK(munmap(*at, *pages * PAGE) == 0);
        *at = NULL;
    }
}

// What the system does with mremap is its own: the rest must not depend on it.
static void step(int number, int file) {
    state = (uint64_t)number * 1000003 + 4711;
    const int which = (int)below(&state, MAPS);
    const size_t begin = below(&state, PAGES - 1);
    const size_t pages = run_length(PAGES - begin);
    switch (below(&state, 13)) {
        case 0:
        case 1:
        case 2: write_run(which, begin, pages); break;
        case 3:
            for (size_t page = begin; page < begin + pages; ++page) verify(which, page);
            break;
        case 4: unmap_and_fill(which, begin, pages); break;
        case 5: map_over(which, begin, pages, kReadWrite); break;
        case 6: forget_run(which, begin, pages, MADV_DONTNEED); break;
        case 7:
            protect(which, begin, pages, kReadWrite);
            forget_run(which, begin, pages, MADV_FREE);
            break;
        case 8: map_file(file, which, begin, pages); break;
        case 9: change_moved(); break;
        case 10: protect_for_a_while(which, begin, pages); break;
        case 11: page_out_run(which, begin, pages); break;
        default:
            // Reserved; usable in steps later on.
            map_over(which, begin, pages, kNone);
            if (pages > 2) protect(which, begin, pages / 2, kReadWrite);
            break;
    }
}

// Where memory holds data, mprotect closes it page by page, and what it held comes back.
static void check_pages(void) {
    const size_t pages = 4 * BLOCK_PAGES;
    unsigned char* base = (unsigned char*)far_memory(pages * PAGE);
    for (size_t page = 0; page < pages; ++page) write_page(base + page * PAGE, (uint32_t)page + 1);
    for (int turn = 0; turn < 60; ++turn) {
        const size_t begin = below(&state, pages - 1);
        const size_t count = 1 + below(&state, pages - begin < 80 ? pages - begin : 80);
        const int closed = turn % 2;
        unsigned char* at = base + begin * PAGE;
        CHECK(mprotect(at, count * PAGE, closed ? PROT_NONE : PROT_READ) == 0);
        for (size_t page = 0; page < pages; page += 1 + below(&state, 9)) {
            unsigned char* byte = base + page * PAGE + below(&state, PAGE);
            if (page < begin || page >= begin + count) {
                *(volatile unsigned char*)byte = *byte;
            } else {
                must_fault(byte, closed ? (int)below(&state, 2) : 1);
            }
        }
        CHECK(mprotect(at, count * PAGE, PROT_READ | PROT_WRITE) == 0);
        for (size_t page = 0; page < pages; ++page) {
            CHECK(page_holds(base + page * PAGE, (uint32_t)page + 1));
        }
    }
    CHECK(munmap(base, pages * PAGE) == 0);
}

// Memory that is closed and then forgotten, as V8 gives code back, is zeros when it is opened
// again; what is beside it in the same block stays.
static void check_closed_and_forgotten(void) {
    const size_t pages = 4 * BLOCK_PAGES;
    unsigned char* base = (unsigned char*)far_memory(pages * PAGE);
    for (int turn = 0; turn < 40; ++turn) {
        for (size_t page = 0; page < pages; ++page) {
            write_page(base + page * PAGE, (uint32_t)page + 1);
        }
        const size_t begin = below(&state, pages - 1);
        const size_t count = 1 + below(&state, pages - begin);
        unsigned char* at = base + begin * PAGE;
        CHECK(mprotect(at, count * PAGE, PROT_NONE) == 0);
        CHECK(madvise(at, count * PAGE, MADV_DONTNEED) == 0);
        for (size_t page = 0; page < pages; ++page) {
            if (page < begin || page >= begin + count) {
                CHECK(page_holds(base + page * PAGE, (uint32_t)page + 1));
            }
        }
        CHECK(mprotect(at, count * PAGE, PROT_READ | PROT_WRITE) == 0);
        for (size_t page = begin; page < begin + count; ++page) {
            CHECK(page_holds(base + page * PAGE, 0));
        }
    }
    CHECK(munmap(base, pages * PAGE) == 0);
}

static int make_file(void) {
    const int file = open("pattern", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && unlink("pattern") == 0);
    static unsigned char content[PAGE];
    for (uint32_t page = 0; page < 300; ++page) {
        write_page(content, page + 1);
        CHECK(write(file, content, PAGE) == (ssize_t)PAGE);
    }
    return file;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = catch_fault, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
    const int file = make_file();
    for (int i = 0; i < MAPS; ++i) {
        map[i] = (unsigned char*)far_memory(PAGES * PAGE);
        for (size_t page = 0; page < PAGES; ++page) page_of[i][page].access = kReadWrite;
        write_run(i, 0, PAGES);
    }
    check_pages();
    check_closed_and_forgotten();
    const int steps = 3000 * work_factor();
    for (int i = 0; i < steps; ++i) step(i, file);
    for (int i = 0; i < MAPS; ++i) {
        for (size_t page = 0; page < PAGES; ++page) verify(i, page);
        CHECK(munmap(map[i], PAGES * PAGE) == 0);
        must_fault(map[i] + 5, 0);
    }
    printf("mappings %llu faults %016llx\n", (unsigned long long)faults,
           (unsigned long long)digest);
    return 0;
}
