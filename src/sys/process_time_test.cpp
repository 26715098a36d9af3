// SPDX-License-Identifier: Apache-2.0
#include "sys/process_time.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "sys/clock.hpp"

namespace hanare::sys {
namespace {

constexpr uint64_t kWork_ns = 20'000'000;

TEST(ProcessTime, CountsWhatThisProcessComputes) {
    const auto before = processor_ns(0);
    ASSERT_TRUE(before) << before.error().text;
    uint64_t now = *before;
    const uint64_t end_ns = now_ns() + 60'000'000'000;
    while (now < *before + kWork_ns && now_ns() < end_ns) now = processor_ns(0).value();
    EXPECT_GE(now, *before + kWork_ns);
    EXPECT_LE(processor_ns(getpid()).value() - now, 60'000'000'000u);
}

TEST(ProcessTime, OfAChild) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        const uint64_t begin = processor_ns(0).value();
        while (processor_ns(0).value() < begin + kWork_ns) {
        }
        (void)!write(ends[1], "x", 1);
        for (;;) pause();
    }
    char byte;
    ASSERT_EQ(read(ends[0], &byte, 1), 1);
    const auto used = processor_ns(child);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(ends[0]);
    close(ends[1]);
    ASSERT_TRUE(used) << used.error().text;
    EXPECT_GE(*used, kWork_ns);
    EXPECT_FALSE(processor_ns(child));  // it is no more
}

}  // namespace
}  // namespace hanare::sys
