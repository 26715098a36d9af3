// SPDX-License-Identifier: Apache-2.0
//
// Threads that are cancelled in system calls with far buffers: their destructors run.
#include "far.h"

#include <atomic>
#include <sched.h>
#include <time.h>

namespace {

std::atomic<int> destroyed{0};

struct Counted {
    ~Counted() { ++destroyed; }
};

struct Wanted {
    int file;
    unsigned char* buffer;
    size_t bytes;
    std::atomic<bool> begun{false};
};

void* wait_in_read(void* context) {
    auto& wanted = *static_cast<Wanted*>(context);
    const Counted first;
    const Counted second;
    wanted.begun = true;
    const ssize_t got = read(wanted.file, wanted.buffer, wanted.bytes);
    fail_check(__FILE__, __LINE__, "must not return", got < 0 ? errno : 0);
}

void* wait_in_sleep(void* context) {
    auto& wanted = *static_cast<Wanted*>(context);
    const Counted one;
    auto* const time = reinterpret_cast<timespec*>(wanted.buffer);
    *time = {1000, 0};
    wanted.begun = true;
    nanosleep(time, time + 1);
    fail_check(__FILE__, __LINE__, "must not return", errno);
}

}  // namespace

int main() {
    prepare();
    int ends[2];
    CHECK(pipe(ends) == 0);
    for (int turn = 0; turn < 60; ++turn) {
        Wanted wanted{ends[0], static_cast<unsigned char*>(cold(120000)),
                      turn % 2 == 0 ? size_t{100} : size_t{120000}};
        pthread_t thread;
        CHECK(pthread_create(&thread, nullptr, turn % 3 == 2 ? wait_in_sleep : wait_in_read,
                             &wanted) == 0);
        while (!wanted.begun) sched_yield();
        if (turn % 10 == 0) sweep();
        CHECK(pthread_cancel(thread) == 0);
        void* result = nullptr;
        CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    }
    CHECK(destroyed == 100);
    sweep();
    CHECK(holds(cold_memory, 8, 1) || cold_memory[0] != 0);
    printf("cancel %d\n", destroyed.load());
    return 0;
}
