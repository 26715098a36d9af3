// SPDX-License-Identifier: Apache-2.0
//
// What the test programs share: checks that end the program, seeded data, and memory that is most
// likely absent.  They know nothing of Hanare and verify all results themselves; what they print
// must not depend on how they were run.
//
//   cold(bytes)       a place for a small argument, in a block of its own, often across two blocks
//   start_pressure()  a thread that walks other memory at random, so that blocks keep leaving
//
// Any thread may call these, once prepare() has been called.
#ifndef HANARE_TESTS_INTERCEPT_FAR_H
#define HANARE_TESTS_INTERCEPT_FAR_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)4096)
#define BLOCK (64 * KIB)

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) fail_check(__FILE__, __LINE__, #condition, errno);               \
    } while (0)

__attribute__((noreturn, unused)) static void fail_check(const char* file, int line,
                                                         const char* condition, int error) {
    char text[300];
    const int bytes = snprintf(text, sizeof text, "%s:%d: %s (errno %d, process %d)\n", file, line,
                               condition, error, (int)getpid());
    if (write(2, text, (size_t)bytes) < 0) _exit(4);
    _exit(3);
}

// splitmix64
__attribute__((unused)) static inline uint64_t next_random(uint64_t* state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

__attribute__((unused)) static size_t below(uint64_t* state, size_t limit) {
    return (size_t)(next_random(state) % limit);
}

__attribute__((unused)) static void fill(void* memory, size_t bytes, uint64_t seed) {
    unsigned char* at = (unsigned char*)memory;
    while (bytes >= 8) {
        const uint64_t word = next_random(&seed);
        memcpy(at, &word, 8);
        at += 8;
        bytes -= 8;
    }
    const uint64_t word = next_random(&seed);
    memcpy(at, &word, bytes);
}

__attribute__((unused)) static int holds(const void* memory, size_t bytes, uint64_t seed) {
    const unsigned char* at = (const unsigned char*)memory;
    while (bytes >= 8) {
        const uint64_t word = next_random(&seed);
        if (memcmp(at, &word, 8) != 0) return 0;
        at += 8;
        bytes -= 8;
    }
    const uint64_t word = next_random(&seed);
    return memcmp(at, &word, bytes) == 0;
}

__attribute__((unused)) static uint64_t mix(uint64_t digest, uint64_t value) {
    uint64_t state = digest ^ value;
    return next_random(&state);
}

__attribute__((unused)) static uint64_t digest_of(const void* memory, size_t bytes) {
    uint64_t digest = bytes;
    const unsigned char* at = (const unsigned char*)memory;
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t word;
        memcpy(&word, at + i, 8);
        digest = (digest ^ word) * 0x100000001b3u;
    }
    return digest;
}

__attribute__((unused)) static void* far_memory(size_t bytes) {
    void* memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

#define COLD_BYTES (40 * MIB)
#define PRESSURE_BYTES (32 * MIB)

static unsigned char* cold_memory;
static unsigned char* pressure_memory;
static uint64_t cold_place;
static int pressure_ends;
static pthread_t pressure_thread;

// 72 MiB that are not empty.
__attribute__((unused)) static void prepare(void) {
    cold_memory = (unsigned char*)far_memory(COLD_BYTES);
    pressure_memory = (unsigned char*)far_memory(PRESSURE_BYTES);
    fill(cold_memory, COLD_BYTES, 1);
    fill(pressure_memory, PRESSURE_BYTES, 2);
}

// At most 128 KiB, aligned to 8 bytes; good until 200 others have been asked for.
__attribute__((unused)) static void* cold(size_t bytes) {
    const uint64_t turn = __atomic_fetch_add(&cold_place, 1, __ATOMIC_RELAXED);
    const size_t place = turn * 5 % (COLD_BYTES / (3 * BLOCK)) * 3 * BLOCK;
    const size_t half = (bytes / 2 + 7) / 8 * 8;
    const size_t inside = turn * 1000 % 60000 / 8 * 8;
    const size_t offset = turn % 3 == 0 && half < BLOCK ? BLOCK - half : inside;
    return cold_memory + place + offset;
}

__attribute__((unused)) static char* cold_text(const char* text) {
    const size_t bytes = strlen(text) + 1;
    return (char*)memcpy(cold(bytes), text, bytes);
}

// Until memory that was used before has most likely left.
__attribute__((unused)) static void sweep(void) {
    for (size_t at = 0; at < PRESSURE_BYTES; at += PAGE) pressure_memory[at] ^= 1;
}

static void* press(void* unused) {
    uint64_t random = 99;
    while (!__atomic_load_n(&pressure_ends, __ATOMIC_RELAXED)) {
        unsigned char* page = pressure_memory + below(&random, PRESSURE_BYTES / PAGE) * PAGE;
        *page = (unsigned char)(*page + 1);
        const volatile unsigned char* other = cold_memory + below(&random, COLD_BYTES);
        (void)*other;
    }
    return unused;
}

__attribute__((unused)) static void start_pressure(void) {
    sigset_t all, before;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    pressure_ends = 0;
    CHECK(pthread_create(&pressure_thread, NULL, press, NULL) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
}

__attribute__((unused)) static void stop_pressure(void) {
    __atomic_store_n(&pressure_ends, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(pressure_thread, NULL) == 0);
}

// How much work: 1 unless the environment says more.
__attribute__((unused)) static int work_factor(void) {
    const char* text = getenv("INTERCEPT_WORK");
    const int factor = text != NULL ? atoi(text) : 1;
    return factor > 0 ? factor : 1;
}

#endif
