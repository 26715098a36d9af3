// SPDX-License-Identifier: Apache-2.0
//
// An array of which one page of each 64 KiB is in use, over and over, and the rest once: what is in
// use fits in the budget, the blocks that it lies in do not.  Meanwhile system calls read into
// pages of the rest.
#include "far.h"

#include <fcntl.h>

enum { kStep = 64 << 10, kTurns = 200, kThreads = 2 };
static const size_t kBytes = 96 * MIB;

static uint8_t* array;

static uint64_t* word(size_t place) { return (uint64_t*)(array + place * kStep); }

// Each thread has every second place.
static void* use(void* number) {
    const size_t places = kBytes / kStep;
    for (uint64_t turn = 1; turn <= kTurns; turn++) {
        for (size_t place = (size_t)number; place < places; place += kThreads) {
            CHECK(*word(place) == (turn - 1) * place);
            *word(place) = turn * place;
        }
    }
    return NULL;
}

static void read_into_places(int file) {
    const size_t places = kBytes / kStep;
    for (size_t place = 1; place < places; place += 7) {
        uint8_t* const at = array + place * kStep + PAGE + 100;
        CHECK(pread(file, at, 200, 0) == 200);
        for (int i = 0; i < 200; i++) CHECK(at[i] == 0);
        at[0] = (uint8_t)place;
    }
}

int main(void) {
    array = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(array != MAP_FAILED);
    for (size_t at = 0; at < kBytes; at += PAGE) array[at + 8] = (uint8_t)(at / PAGE);
    pthread_t threads[kThreads];
    for (size_t i = 0; i < kThreads; i++) {
        CHECK(pthread_create(&threads[i], NULL, use, (void*)i) == 0);
    }
    const int file = open("/dev/zero", O_RDONLY);
    read_into_places(file);
    for (size_t i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
    for (size_t place = 0; place < kBytes / kStep; place++) {
        CHECK(*word(place) == kTurns * place);
    }
    for (size_t at = 0; at < kBytes; at += PAGE) {
        CHECK(array[at + 8] == (uint8_t)(at / PAGE));
    }
    for (size_t place = 1; place < kBytes / kStep; place += 7) {
        CHECK(array[place * kStep + PAGE + 100] == (uint8_t)place);
    }
    puts("done");
    return 0;
}
