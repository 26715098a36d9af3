// SPDX-License-Identifier: Apache-2.0
//
// fork with far memory: three generations, children that write while the parent writes, eight at
// once, children that are killed, and other threads that go on meanwhile.  The store must not grow
// with children that are gone.
#include "far.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define WORDS (18 * MIB / 8)

static uint64_t* data;
static uint64_t digest;

static uint64_t sum_of(const uint64_t* words) {
    uint64_t sum = 0;
    for (size_t i = 0; i < WORDS; ++i) sum = sum * 31 + words[i];
    return sum;
}

static void change(uint64_t seed, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        const size_t at = below(&seed, WORDS);
        data[at] = next_random(&seed);
    }
}

static void expect(pid_t child, int wanted) {
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == wanted);
}

// Of the file that holds what is not in memory; 0 if there is none.
static uint64_t store_bytes(void) {
    uint64_t most = 0;
    DIR* folder = opendir("/proc/self/fd");
    CHECK(folder != NULL);
    for (struct dirent* entry; (entry = readdir(folder)) != NULL;) {
        struct stat status;
        if (fstatat(dirfd(folder), entry->d_name, &status, 0) != 0) continue;
        const uint64_t bytes = (uint64_t)status.st_blocks * 512;
        if (S_ISREG(status.st_mode) && bytes > most) most = bytes;
    }
    CHECK(closedir(folder) == 0);
    return most;
}

static void use_generations(void) {
    const uint64_t sum = sum_of(data);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(sum_of(data) == sum);
        const pid_t grandchild = fork();
        CHECK(grandchild >= 0);
        if (grandchild == 0) {
            change(5, 20000);
            CHECK(sum_of(data) != sum);
            const pid_t last = fork();
            const uint64_t own = sum_of(data);
            change(6, 20000);
            if (last == 0) _exit(own != sum && sum_of(data) != own ? 4 : 1);
            expect(last, 4);
            _exit(3);
        }
        CHECK(sum_of(data) == sum);
        change(7, 20000);
        const uint64_t own = sum_of(data);
        expect(grandchild, 3);
        CHECK(sum_of(data) == own);
        _exit(2);
    }
    change(8, 20000);
    const uint64_t own = sum_of(data);
    expect(child, 2);
    CHECK(sum_of(data) == own);
    digest = mix(digest, own);
}

static void use_eight(void) {
    pid_t child[8];
    const uint64_t sum = sum_of(data);
    for (uint64_t i = 0; i < 8; ++i) {
        child[i] = fork();
        CHECK(child[i] >= 0);
        if (child[i] == 0) {
            CHECK(sum_of(data) == sum);
            change(100 + i, 3000);
            uint64_t seed = 100 + i;
            const size_t first = below(&seed, WORDS);
            _exit(data[first] == next_random(&seed) ? 10 + (int)i : 1);
        }
    }
    for (int i = 0; i < 8; ++i) expect(child[i], 10 + i);
    CHECK(sum_of(data) == sum);
}

static void use_killed(void) {
    uint64_t early = 0;
    for (uint64_t turn = 0; turn < 40 * (uint64_t)work_factor(); ++turn) {
        int ends[2];
        CHECK(pipe(ends) == 0);
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            change(turn, 5);
            CHECK(write(ends[1], "x", 1) == 1);
            for (;;) change(turn, 5);
        }
        char word;
        change(turn + 1000, 20);
        CHECK(read(ends[0], &word, 1) == 1 && kill(child, SIGKILL) == 0);
        int status;
        CHECK(waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGKILL);
        CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
        if (turn == 20) early = store_bytes();
    }
    CHECK(store_bytes() <= 2 * early + 64 * MIB);
    digest = mix(digest, sum_of(data));
}

static int stop;

static void* keep_busy(void* context) {
    uint64_t random = (uint64_t)(uintptr_t)context;
    enum { kPieces = 64 };
    unsigned char* piece[kPieces] = {NULL};
    size_t bytes[kPieces] = {0};
    uint64_t seed[kPieces] = {0};
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        const size_t i = below(&random, kPieces);
        if (piece[i] != NULL) CHECK(holds(piece[i], bytes[i], seed[i]));
        free(piece[i]);
        bytes[i] = 1 + below(&random, below(&random, 8) == 0 ? 400000 : 3000);
        seed[i] = next_random(&random);
        piece[i] = (unsigned char*)malloc(bytes[i]);
        CHECK(piece[i] != NULL);
        fill(piece[i], bytes[i], seed[i]);
    }
    for (size_t i = 0; i < kPieces; ++i) free(piece[i]);
    return NULL;
}

static void use_threads(void) {
    pthread_t threads[3];
    for (uintptr_t i = 0; i < 3; ++i) {
        CHECK(pthread_create(&threads[i], NULL, keep_busy, (void*)(i + 1)) == 0);
    }
    start_pressure();
    for (int turn = 0; turn < 6 * work_factor(); ++turn) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            uint64_t random = (uint64_t)turn;
            unsigned char* memory = (unsigned char*)malloc(MIB);
            CHECK(memory != NULL);
            fill(memory, MIB, random);
            for (int i = 0; i < 200; ++i) {
                const size_t at = below(&random, WORDS);
                data[at] = at;
                CHECK(data[at] == at);
            }
            CHECK(holds(memory, MIB, (uint64_t)turn));
            free(memory);
            if (turn % 2 == 0) _exit(6);
            execl("/bin/sh", "sh", "-c", "exit 6", (char*)NULL);
            _exit(1);
        }
        expect(child, 6);
    }
    stop_pressure();
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
    digest = mix(digest, sum_of(data));
}

int main(void) {
    data = (uint64_t*)far_memory(WORDS * 8);
    fill(data, WORDS * 8, 1);
    use_generations();
    use_eight();
    use_killed();
    prepare();
    use_threads();
    printf("forks %016llx\n", (unsigned long long)digest);
    return 0;
}
