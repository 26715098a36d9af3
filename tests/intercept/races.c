// SPDX-License-Identifier: Apache-2.0
//
// Four threads transfer random parts of far memory through files and datagram sockets and verify
// what comes back, while two others keep evicting blocks.  INTERCEPT_WORK=10 does ten times as
// much.
#include "far.h"

#include <fcntl.h>
#include <sys/socket.h>

#define WORKERS 4
#define TURNS 600
#define ARENA_BYTES (24 * MIB)

static unsigned char* arena[WORKERS];
static uint64_t digests[WORKERS];
static int stop;

static void* thrash(void* context) {
    uint64_t random = (uint64_t)(uintptr_t)context;
    unsigned char* memory = (unsigned char*)far_memory(40 * MIB);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        memory[below(&random, 40 * MIB)]++;
        const volatile unsigned char* other = arena[below(&random, WORKERS)];
        (void)other[below(&random, ARENA_BYTES)];
    }
    CHECK(munmap(memory, 40 * MIB) == 0);
    return NULL;
}

// Two parts that do not overlap.
static void choose(unsigned char* base, size_t bytes, uint64_t* random, unsigned char** from,
                   unsigned char** to) {
    *from = base + below(random, ARENA_BYTES / 2 - bytes);
    *to = base + ARENA_BYTES / 2 + below(random, ARENA_BYTES / 2 - bytes);
}

static void* work(void* context) {
    const uintptr_t own = (uintptr_t)context;
    uint64_t random = own * 1000 + 7;
    char name[20];
    snprintf(name, sizeof name, "races%d", (int)own);
    const int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    int pair[2];
    CHECK(file >= 0 && unlink(name) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    const int turns = TURNS * work_factor();
    for (int turn = 0; turn < turns; ++turn) {
        const int datagram = turn % 2;
        const size_t bytes = 1 + below(&random, datagram ? 60000 : 200000);
        const uint64_t seed = next_random(&random);
        unsigned char *from, *to;
        choose(arena[own], bytes, &random, &from, &to);
        fill(from, bytes, seed);
        if (datagram) {
            CHECK(send(pair[0], from, bytes, 0) == (ssize_t)bytes);
            CHECK(recv(pair[1], to, bytes + below(&random, 3), 0) == (ssize_t)bytes);
        } else {
            const off_t offset = (off_t)below(&random, 100000);
            CHECK(pwrite(file, from, bytes, offset) == (ssize_t)bytes);
            CHECK(pread(file, to, bytes, offset) == (ssize_t)bytes);
        }
        CHECK(holds(to, bytes, seed));
        digests[own] = mix(digests[own], digest_of(to, bytes));
    }
    CHECK(close(file) == 0 && close(pair[0]) == 0 && close(pair[1]) == 0);
    return NULL;
}

int main(void) {
    for (int i = 0; i < WORKERS; ++i) {
        arena[i] = (unsigned char*)far_memory(ARENA_BYTES);
        fill(arena[i], ARENA_BYTES, (uint64_t)i);
    }
    pthread_t workers[WORKERS], thrashers[2];
    for (uintptr_t i = 0; i < 2; ++i) {
        CHECK(pthread_create(&thrashers[i], NULL, thrash, (void*)(i + 1)) == 0);
    }
    for (uintptr_t i = 0; i < WORKERS; ++i) {
        CHECK(pthread_create(&workers[i], NULL, work, (void*)i) == 0);
    }
    uint64_t digest = 0;
    for (int i = 0; i < WORKERS; ++i) {
        CHECK(pthread_join(workers[i], NULL) == 0);
        digest = mix(digest, digests[i]);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; ++i) CHECK(pthread_join(thrashers[i], NULL) == 0);
    printf("races %016llx\n", (unsigned long long)digest);
    return 0;
}
