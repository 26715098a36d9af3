// SPDX-License-Identifier: Apache-2.0
#include "sys/futex.hpp"

#include <cerrno>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

namespace hanare::sys {
namespace {

TEST(Futex, WaitReturnsAtOnceWhenTheWordDiffers) {
    const std::atomic<uint32_t> word{1};
    futex_wait(word, 0);  // would hang for ever
}

TEST(Futex, WaitEndsAfterTheTimeOut) {
    const std::atomic<uint32_t> word{0};
    const auto start = std::chrono::steady_clock::now();
    futex_wait(word, 0, 20);
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20));
}

TEST(Futex, WakeEndsEveryWait) {
    std::atomic<uint32_t> word{0};
    const auto wait = [&] {
        while (word == 0) futex_wait(word, 0);
    };
    std::thread first(wait);
    std::thread second(wait);
    word = 1;
    futex_wake_all(word);
    first.join();
    second.join();
}

TEST(Futex, KeepsErrno) {
    const std::atomic<uint32_t> word{0};
    errno = E2BIG;
    futex_wait(word, 1);
    futex_wait(word, 0, 1);
    futex_wake(word, 1);
    EXPECT_EQ(errno, E2BIG);
}

}  // namespace
}  // namespace hanare::sys
