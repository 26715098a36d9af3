// SPDX-License-Identifier: Apache-2.0
//
// Threads read and write words of the same pages at random, alone and in short runs: half of the
// time some pages that change slowly, else all of them.  Each thread knows what its words must be.
// Meanwhile pages are given up, and children find the memory as it was when they were born.
#include "far.h"

#include <stdatomic.h>
#include <sys/wait.h>

enum { kThreads = 4, kSteps = 12000, kChildren = 3, kRunMax = 12, kHot = 1500 };
static const size_t kPages = 64 * MIB / PAGE;

static uint8_t* array;
static atomic_int running = kThreads;

typedef struct {
    size_t number;
    _Atomic uint16_t* versions;  // of its word of each page
} Thread;
static Thread threads[kThreads];

// The word of the page that is the thread's.
static _Atomic uint64_t* word(const Thread* thread, size_t page) {
    const size_t slot = page * 7 % (PAGE / 8 / kThreads);
    return (_Atomic uint64_t*)(array + page * PAGE) + slot * kThreads + thread->number;
}

static uint64_t content(const Thread* thread, size_t page, unsigned version) {
    uint64_t state = page * kThreads + thread->number + (uint64_t)version * 0x100000001;
    return version == 0 ? 0 : next_random(&state);
}

static void use(const Thread* thread, size_t page, int writes) {
    const unsigned version = atomic_load(&thread->versions[page]);
    CHECK(atomic_load(word(thread, page)) == content(thread, page, version));
    if (!writes) return;
    atomic_store(word(thread, page), content(thread, page, version + 1));
    atomic_store(&thread->versions[page], (uint16_t)(version + 1));
}

static void* wander(void* argument) {
    const Thread* const thread = argument;
    uint64_t state = thread->number + 1;
    for (size_t step = 0; step < kSteps; step++) {
        const uint64_t choice = next_random(&state);
        const size_t hot = (step / 16 * 3 + below(&state, kHot)) % kPages;
        const size_t page = choice % 2 == 0 ? hot : below(&state, kPages);
        const size_t run = choice / 2 % 8 == 0 ? 1 + below(&state, kRunMax) : 1;
        for (size_t i = 0; i < run && page + i < kPages; i++) {
            use(thread, page + i, choice / 16 % 3 == 0);
        }
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

// A thread may have been between the word and its version.
static void check_all(unsigned most_ahead) {
    for (size_t i = 0; i < kThreads; i++) {
        for (size_t page = 0; page < kPages; page++) {
            const unsigned version = atomic_load(&threads[i].versions[page]);
            const uint64_t is = atomic_load(word(&threads[i], page));
            unsigned ahead = 0;
            while (ahead < most_ahead && is != content(&threads[i], page, version + ahead)) ahead++;
            CHECK(is == content(&threads[i], page, version + ahead));
        }
    }
}

// Pages behind the others, which nobody keeps anything in for long.
static void give_up_pages(uint8_t* rest, uint64_t* state) {
    const size_t pages = 1 + below(state, kRunMax);
    uint8_t* const at = rest + below(state, MIB / PAGE - pages) * PAGE;
    for (size_t i = 0; i < pages; i++) CHECK(at[i * PAGE] == 0);
    memset(at, 1, pages * PAGE);
    CHECK(madvise(at, pages * PAGE, MADV_DONTNEED) == 0);
}

int main(void) {
    uint8_t* const all =
        mmap(NULL, kPages * PAGE + MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(all != MAP_FAILED);
    array = all;
    pthread_t handles[kThreads];
    for (size_t i = 0; i < kThreads; i++) {
        threads[i] = (Thread){i, calloc(kPages, sizeof *threads[i].versions)};
        CHECK(threads[i].versions != NULL);
    }
    for (size_t i = 0; i < kThreads; i++) {
        CHECK(pthread_create(&handles[i], NULL, wander, &threads[i]) == 0);
    }
    uint64_t state = 99;
    for (int child = 0; child < kChildren; child++) {
        for (int i = 0; i < 200; i++) give_up_pages(all + kPages * PAGE, &state);
        const pid_t process = fork();
        CHECK(process >= 0);
        if (process == 0) {
            check_all(1);
            _exit(0);
        }
        int status = 0;
        CHECK(waitpid(process, &status, 0) == process && status == 0);
    }
    while (atomic_load(&running) > 0) give_up_pages(all + kPages * PAGE, &state);
    for (size_t i = 0; i < kThreads; i++) CHECK(pthread_join(handles[i], NULL) == 0);
    check_all(0);
    puts("done");
    return 0;
}
