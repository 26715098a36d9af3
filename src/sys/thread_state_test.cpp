// SPDX-License-Identifier: Apache-2.0
#include "sys/thread_state.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <unistd.h>

namespace hanare::sys {

namespace {

TEST(ThreadState, TellsWhoIsInASystemCallAndWhoRuns) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    std::atomic<uint32_t> number{0};
    std::thread sleeper([&] {
        number = current_thread_id();
        char byte = 0;
        EXPECT_EQ(read(ends[0], &byte, 1), 1);
        while (number != 0) {
        }
    });
    while (number == 0) std::this_thread::yield();
    while (thread_state(number) != ThreadState::kInSystemCall) std::this_thread::yield();
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    while (thread_state(number) != ThreadState::kRunning) std::this_thread::yield();
    number = 0;
    sleeper.join();
    EXPECT_EQ(thread_state(0x7fffffff), ThreadState::kInFault);
    close(ends[0]);
    close(ends[1]);
}

std::atomic<uint32_t> signalled{0};

TEST(ThreadState, SignalsTheThreadAndNoOther) {
    std::signal(SIGUSR1, [](int) { signalled = current_thread_id(); });
    std::atomic<uint32_t> number{0};
    std::thread target([&] {
        number = current_thread_id();
        while (signalled == 0) std::this_thread::yield();
    });
    while (number == 0) std::this_thread::yield();
    signal_thread(number, SIGUSR1);
    target.join();
    EXPECT_EQ(signalled, number);
    EXPECT_NE(signalled, current_thread_id());
    std::signal(SIGUSR1, SIG_DFL);
}

}  // namespace

}  // namespace hanare::sys
