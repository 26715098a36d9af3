// SPDX-License-Identifier: Apache-2.0
//
// read, write, pread and pwrite between a file and memory that keeps leaving: of any size, in
// several threads, to the end of the file and beyond it, at the limit of a file's size, in a forked
// child. What a number of a descriptor means changes meanwhile: another file, a pipe, a file for
// appending and one past the page cache.
#include "far.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define FILE_BYTES (8 * MIB)
#define PIECE_MAX (300 * (size_t)1000)
#define THREADS 2

static unsigned char* expected;  // what the file holds, of each thread its own half

static int new_file(int flags) {
    char name[] = "./transfers-XXXXXX";
    const int made = mkstemp(name);
    CHECK(made >= 0);
    const int file = open(name, O_RDWR | O_CLOEXEC | flags);
    CHECK(unlink(name) == 0 && close(made) == 0);
    return file;
}

static unsigned char byte_at(size_t at, uint64_t seed) {
    return (unsigned char)((at * 2654435761u + seed) >> 13);
}

// Small often, so that most memory is there; sometimes across several blocks.
static size_t some_bytes(uint64_t* random) {
    return 1 + (below(random, 8) == 0 ? below(random, PIECE_MAX) : below(random, 5000));
}

struct part {
    int file;
    size_t begin, end;  // of the file
    uint64_t seed, digest;
    unsigned char* memory;
};

static void* transfer(void* of_part) {
    struct part* const part = (struct part*)of_part;
    const size_t room = PIECE_MAX + 12 * MIB;
    uint64_t random = part->seed;
    for (int i = 0; i < 6000 * work_factor(); ++i) {
        const size_t bytes = some_bytes(&random);
        const size_t at = part->begin + below(&random, part->end - part->begin - bytes);
        unsigned char* const memory = part->memory + below(&random, room - bytes);
        if (below(&random, 2) == 0) {
            for (size_t k = 0; k < bytes; ++k) {
                memory[k] = expected[at + k] = byte_at(at + k, random);
            }
            CHECK(pwrite(part->file, memory, bytes, (off_t)at) == (ssize_t)bytes);
        } else {
            CHECK(pread(part->file, memory, bytes, (off_t)at) == (ssize_t)bytes);
            CHECK(memcmp(memory, expected + at, bytes) == 0);
        }
        part->digest = mix(part->digest, memory[bytes / 2]);
    }
    return NULL;
}

static uint64_t transfer_in_threads(int file) {
    struct part parts[THREADS];
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; ++i) {
        const size_t half = FILE_BYTES / THREADS;
        parts[i] = (struct part){file,  i * half, (i + 1) * half,
                                 i + 1, 0,        (unsigned char*)far_memory(PIECE_MAX + 12 * MIB)};
        CHECK(pthread_create(&threads[i], NULL, transfer, &parts[i]) == 0);
    }
    uint64_t digest = 0;
    for (size_t i = 0; i < THREADS; ++i) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        digest = mix(digest, parts[i].digest);
        CHECK(munmap(parts[i].memory, PIECE_MAX + 12 * MIB) == 0);
    }
    return digest;
}

// In order, with the position that the file keeps, and past its end.
static uint64_t copy_in_order(int file) {
    unsigned char* const memory = (unsigned char*)far_memory(FILE_BYTES);
    uint64_t random = 77;
    CHECK(lseek(file, 0, SEEK_SET) == 0);
    size_t done = 0;
    for (;;) {
        const size_t bytes = some_bytes(&random);
        const size_t left = FILE_BYTES - done;
        const ssize_t got = read(file, memory + done, bytes < left ? bytes : left + 1);
        CHECK(got == (ssize_t)(bytes < left ? bytes : left));
        done += (size_t)got;
        if (got == 0) break;
        CHECK(lseek(file, 0, SEEK_CUR) == (off_t)done);
    }
    CHECK(memcmp(memory, expected, FILE_BYTES) == 0);
    const int other = new_file(0);
    for (done = 0; done < FILE_BYTES;) {
        const size_t left = FILE_BYTES - done;
        size_t bytes = some_bytes(&random);
        if (bytes > left) bytes = left;
        CHECK(write(other, memory + done, bytes) == (ssize_t)bytes);
        done += bytes;
    }
    const uint64_t digest = digest_of(memory, FILE_BYTES);
    memset(memory, 0, FILE_BYTES);
    CHECK(pread(other, memory, FILE_BYTES, 0) == (ssize_t)FILE_BYTES);
    CHECK(memcmp(memory, expected, FILE_BYTES) == 0);
    CHECK(close(other) == 0 && munmap(memory, FILE_BYTES) == 0);
    return digest;
}

// Who reads where another one has ended gets one piece of the file, whoever else does so.
static void* take_turns(void* of_file) {
    const int file = *(const int*)of_file;
    uint64_t* const words = (uint64_t*)far_memory(4 * MIB);
    uint64_t random = (uint64_t)(uintptr_t)words;
    size_t done = 0;
    for (;;) {
        uint64_t* const place = words + below(&random, 4 * MIB / 8 - 2048);
        const ssize_t got = read(file, place, 8 * (1 + below(&random, 2048)));
        CHECK(got >= 0 && got % 8 == 0);
        if (got == 0) break;
        for (size_t i = 1; i < (size_t)got / 8; ++i) CHECK(place[i] == place[0] + i);
        done += (size_t)got;
    }
    CHECK(munmap(words, 4 * MIB) == 0);
    return (void*)done;
}

static void share_position(void) {
    const size_t words = 4 * MIB;
    uint64_t* const numbers = (uint64_t*)far_memory(8 * words);
    for (size_t i = 0; i < words; ++i) numbers[i] = i;
    int file = new_file(0);
    CHECK(pwrite(file, numbers, 8 * words, 0) == (ssize_t)(8 * words));
    for (int i = 0; i < 200; ++i) CHECK(read(file, numbers, 4096) == 4096);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; ++i) {
        CHECK(pthread_create(&threads[i], NULL, take_turns, &file) == 0);
    }
    size_t done = 200 * 4096;
    for (size_t i = 0; i < THREADS; ++i) {
        void* taken = NULL;
        CHECK(pthread_join(threads[i], &taken) == 0);
        done += (size_t)taken;
    }
    CHECK(done == 8 * words && close(file) == 0 && munmap(numbers, 8 * words) == 0);
}

// Memory that stays.
static void stay(int file) {
    unsigned char* const memory = (unsigned char*)cold_memory;
    for (int i = 0; i < 40000; ++i) {
        const size_t at = (size_t)i * 100;
        CHECK(pread(file, memory, 1000, (off_t)at) == 1000);
        CHECK(memcmp(memory, expected + at, 1000) == 0);
    }
}

// Errors are told, and what is not the program's stays so.
static void fail_as_ever(int file) {
    unsigned char* const memory = (unsigned char*)far_memory(MIB);
    for (int i = 0; i < 200; ++i) CHECK(pread(file, memory, 4096, 0) == 4096);
    CHECK(mprotect(memory + MIB / 2, MIB / 2, PROT_NONE) == 0);
    CHECK(pread(file, memory + MIB / 2, 100, 0) == -1 && errno == EFAULT);
    CHECK(pread(file, memory, 100, -5) == -1 && errno == EINVAL);
    CHECK(pread(file, memory, 100, FILE_BYTES + 5) == 0);
    CHECK(pread(file, memory, 100, FILE_BYTES - 5) == 5);
    CHECK(memcmp(memory, expected + FILE_BYTES - 5, 5) == 0);
    CHECK(munmap(memory, MIB) == 0);
    CHECK(pread(file, memory, 100, 0) == -1 && errno == EFAULT);
}

// One number: /dev/zero, then a socket, a file, one for appending.
static uint64_t change_meaning(int file) {
    unsigned char* const memory = (unsigned char*)cold_memory;
    const int number = 100;
    const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    uint64_t digest = 0;
    for (int round = 0; round < 3; ++round) {
        CHECK(dup2(zeros, number) == number);
        for (int i = 0; i < 200; ++i) CHECK(read(number, memory, 3000) == 3000);
        int pair[2];
        CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
        // The upper half of the register is nobody's.
        CHECK(syscall(SYS_dup2, (long)pair[1], 0x700000000L | number) == number);
        // A datagram that is read into memory which is not there must not be lost.
        for (int i = 0; i < 50; ++i) {
            const unsigned char sent = (unsigned char)(i + round);
            unsigned char* const place = (unsigned char*)cold(100);
            sweep();
            CHECK(send(pair[0], &sent, 1, 0) == 1);
            CHECK(read(number, place, 100) == 1 && *place == sent);
        }
        CHECK(close(pair[0]) == 0 && close(pair[1]) == 0);
        CHECK(dup2(file, number) == number);
        for (int i = 0; i < 200; ++i) CHECK(pread(number, memory, 3000, 4096) == 3000);
        const int log = new_file(O_APPEND);
        CHECK(dup2(log, number) == number && close(log) == 0);
        for (int i = 0; i < 100; ++i) CHECK(write(number, memory + i, 777) == 777);
        CHECK(lseek(number, 0, SEEK_END) == 77700);
        CHECK(pread(number, memory + MIB, 77700, 0) == 77700);
        digest = mix(digest, digest_of(memory + MIB, 77700));
    }
    CHECK(close(number) == 0 && close(zeros) == 0);
    return digest;
}

static uint64_t reach_limit(void) {
    unsigned char* const memory = (unsigned char*)cold_memory;
    const int file = new_file(0);
    for (int i = 0; i < 200; ++i) CHECK(pwrite(file, memory, 1000, 0) == 1000);
    const struct rlimit limit = {MIB, RLIM_INFINITY};
    struct rlimit before;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0 && setrlimit(RLIMIT_FSIZE, &limit) == 0);
    // Up to the limit, without the signal.
    CHECK(pwrite(file, memory, 2000, (off_t)(MIB - 500)) == 500);
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(pwrite(file, memory, 2000, (off_t)(MIB - 500)) == 2000);
    CHECK(close(file) == 0);
    return 2;
}

// Written past the page cache from now on.
static void go_direct(int file) {
    void* const aligned = (void*)(((uintptr_t)cold_memory + BLOCK) / BLOCK * BLOCK);
    for (int i = 0; i < 100; ++i) CHECK(pread(file, aligned, 65536, 65536) == 65536);
    if (fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_DIRECT) != 0) return;
    for (int i = 0; i < 1000; ++i) {
        const size_t at = (size_t)(i % 100) * 65536;
        CHECK(pread(file, aligned, 65536, (off_t)at) == 65536);
        CHECK(memcmp(aligned, expected + at, 65536) == 0);
    }
}

int main(void) {
    prepare();
    const int file = new_file(0);
    expected = (unsigned char*)far_memory(FILE_BYTES);
    fill(expected, FILE_BYTES, 3);
    CHECK(pwrite(file, expected, FILE_BYTES, 0) == (ssize_t)FILE_BYTES);
    // Alone, and then not any more.
    uint64_t digest = copy_in_order(file);
    share_position();
    start_pressure();
    digest = mix(digest, transfer_in_threads(file));
    digest = mix(digest, copy_in_order(file));
    stop_pressure();
    stay(file);
    fail_as_ever(file);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        // Its numbers are its own.
        copy_in_order(file);
        fail_as_ever(file);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    digest = mix(digest, copy_in_order(file));
    digest = mix(digest, change_meaning(file));
    digest = mix(digest, reach_limit());
    start_pressure();
    go_direct(file);
    stop_pressure();
    printf("transfers %016llx\n", (unsigned long long)digest);
    return 0;
}
