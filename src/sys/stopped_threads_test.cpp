// SPDX-License-Identifier: Apache-2.0
#include "sys/stopped_threads.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "base/sanitizers.hpp"
#include "sys/test_tracing.hpp"

namespace hanare::sys {
namespace {

class StoppedThreadsTest : public ::testing::Test {
protected:
    void SetUp() override {
#if defined(HANARE_ASAN) || defined(HANARE_TSAN)
        GTEST_SKIP() << "a sanitizer has to know all processes";
#endif
        if (!testing::may_be_traced()) GTEST_SKIP() << "ptrace(2) is refused here";
    }
};

struct Counters {
    std::atomic<bool> end{false};
    std::atomic<uint64_t> turns{0};
    std::vector<std::thread> threads;

    // They block all signals, as those of many libraries do.
    explicit Counters(int count) {
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        for (int i = 0; i < count; ++i) {
            threads.emplace_back([this] {
                while (!end.load()) turns.fetch_add(1);
            });
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        while (turns.load() < 1000) sched_yield();
    }
    ~Counters() {
        end = true;
        for (std::thread& thread : threads) thread.join();
    }
};

TEST_F(StoppedThreadsTest, DoNothingUntilTheyGoOn) {
    Counters counters(3);
    for (int turn = 0; turn < 20; ++turn) {
        StoppedThreads others;
        ASSERT_TRUE(others.stop());
        EXPECT_EQ(others.threads().size(), 3u);
        const uint64_t before = counters.turns.load();
        for (int i = 0; i < 1000; ++i) sched_yield();
        EXPECT_EQ(counters.turns.load(), before);
        others.go_on();
        while (counters.turns.load() == before) sched_yield();
    }
}

// Threads come and go all the time.
TEST_F(StoppedThreadsTest, AreAllThatThereAre) {
    std::atomic<bool> end{false};
    std::atomic<uint64_t> born{0};
    std::thread maker([&] {
        while (!end.load()) {
            std::thread child([&] { born.fetch_add(1); });
            child.join();
        }
    });
    for (int turn = 0; turn < 300; ++turn) {
        StoppedThreads others;
        const auto stopped = others.stop();
        EXPECT_TRUE(stopped) << stopped.error().text;
        if (!stopped) break;
        EXPECT_GE(others.threads().size(), 1u);
        const uint64_t before = born.load();
        for (int i = 0; i < 100; ++i) sched_yield();
        EXPECT_EQ(born.load(), before);
    }
    end = true;
    maker.join();
}

TEST_F(StoppedThreadsTest, WaitOnInTheKernel) {
    sem_t semaphore;
    ASSERT_EQ(sem_init(&semaphore, 0, 0), 0);
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    std::atomic<int> waiting{0};
    std::atomic<int> failures{0};
    std::thread on_semaphore([&] {
        waiting.fetch_add(1);
        failures += sem_wait(&semaphore) != 0;
    });
    std::thread on_pipe([&] {
        char byte = 0;
        waiting.fetch_add(1);
        failures += read(pipe_ends[0], &byte, 1) != 1 || byte != 'x';
    });
    std::thread asleep([&] {
        const timespec time = {0, 50'000'000};
        timespec rest = {};
        waiting.fetch_add(1);
        failures += clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &rest) != 0;
    });
    while (waiting.load() < 3) sched_yield();
    for (int turn = 0; turn < 20; ++turn) {
        StoppedThreads others;
        ASSERT_TRUE(others.stop());
    }
    ASSERT_EQ(write(pipe_ends[1], "x", 1), 1);
    ASSERT_EQ(sem_post(&semaphore), 0);
    on_semaphore.join();
    on_pipe.join();
    asleep.join();
    EXPECT_EQ(failures.load(), 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    sem_destroy(&semaphore);
}

TEST_F(StoppedThreadsTest, GetTheirSignals) {
    static std::atomic<int> received{0};
    struct sigaction action = {};
    struct sigaction before = {};
    action.sa_handler = [](int) { received.fetch_add(1); };
    ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
    std::atomic<bool> end{false};
    std::thread other([&] {
        while (!end.load()) sched_yield();
    });
    int sent = 0;
    for (int turn = 0; turn < 200; ++turn) {
        ASSERT_EQ(pthread_kill(other.native_handle(), SIGUSR1), 0);
        ++sent;
        {
            StoppedThreads others;
            ASSERT_TRUE(others.stop());
        }
        while (received.load() < sent) sched_yield();
    }
    end = true;
    other.join();
    sigaction(SIGUSR1, &before, nullptr);
    EXPECT_EQ(received.load(), sent);
}

// Where a process may not be traced, nobody is stopped, and one line says why.
TEST_F(StoppedThreadsTest, GoOnWhereTracingIsRefused) {
    if (geteuid() == 0) GTEST_SKIP() << "root may trace whatever it is";
    Counters counters(1);
    ASSERT_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
    StoppedThreads others;
    const auto stopped = others.stop();
    prctl(PR_SET_DUMPABLE, 1);
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().status, HANARE_STATUS_NOT_SUPPORTED);
    const uint64_t before = counters.turns.load();
    while (counters.turns.load() == before) sched_yield();
}

}  // namespace
}  // namespace hanare::sys
