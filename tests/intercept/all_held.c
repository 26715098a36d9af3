// SPDX-License-Identifier: Apache-2.0
//
// More is in use by system calls than local memory holds: of one call that cannot be cut short, and
// of many that sleep, each in a buffer of its own, until a thread comes on that needs memory, too.
#include "far.h"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define SLEEPERS 160
#define BUFFER (256 * KIB)

static int ends[SLEEPERS][2];
static unsigned char* buffers;
static int begun;

static void* receive(void* number) {
    const size_t i = (size_t)number;
    unsigned char* const buffer = buffers + i * BUFFER;
    __atomic_fetch_add(&begun, 1, __ATOMIC_SEQ_CST);
    CHECK(recv(ends[i][0], buffer, BUFFER, 0) == 1000);
    CHECK(holds(buffer, 1000, 100 + i));
    return NULL;
}

static void random_bytes(void) {
    unsigned char* const memory = (unsigned char*)far_memory(48 * MIB);
    CHECK(getrandom(memory, 48 * MIB, 0) > 0);
    size_t done = 0;
    while (done < 48 * MIB) {
        const ssize_t count = getrandom(memory + done, 48 * MIB - done, 0);
        CHECK(count > 0);
        done += (size_t)count;
    }
    size_t zeros = 0;
    for (size_t at = 0; at < 48 * MIB; ++at) zeros += memory[at] == 0;
    CHECK(zeros > 48 * MIB / 300 && zeros < 48 * MIB / 200);
    CHECK(munmap(memory, 48 * MIB) == 0);
}

static void sleepers(void) {
    buffers = (unsigned char*)far_memory(SLEEPERS * BUFFER);
    pthread_t threads[SLEEPERS];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * KIB);
    for (size_t i = 0; i < SLEEPERS; ++i) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]) == 0);
        CHECK(pthread_create(&threads[i], &attributes, receive, (void*)i) == 0);
    }
    while (__atomic_load_n(&begun, __ATOMIC_SEQ_CST) < SLEEPERS) sched_yield();
    // Whoever is to wake them needs memory before.
    sweep();
    unsigned char text[1000];
    for (size_t i = 0; i < SLEEPERS; ++i) {
        fill(text, sizeof text, 100 + i);
        CHECK(send(ends[i][1], text, sizeof text, 0) == sizeof text);
    }
    for (size_t i = 0; i < SLEEPERS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(munmap(buffers, SLEEPERS * BUFFER) == 0);
}

int main(void) {
    prepare();
    random_bytes();
    sleepers();
    CHECK(holds(cold_memory, COLD_BYTES, 1));
    puts("all have had their turn");
    return 0;
}
