// SPDX-License-Identifier: Apache-2.0
#include "sys/inject.hpp"

#include <cerrno>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace hanare::sys::inject {
namespace {

class Inject : public ::testing::Test {
protected:
    ~Inject() override { disarm_all(); }
};

TEST_F(Inject, IsSilentWhenDisarmed) {
    EXPECT_EQ(next_errno(Call::kRead), 0);
    arm(Call::kRead, EIO);
    disarm_all();
    EXPECT_EQ(next_errno(Call::kRead), 0);
}

TEST_F(Inject, HitsTheChosenCallsOnly) {
    arm(Call::kRead, EIO, 2, 1);
    EXPECT_EQ(next_errno(Call::kRead), 0);
    EXPECT_EQ(next_errno(Call::kWrite), 0);
    EXPECT_EQ(next_errno(Call::kRead), 0);
    EXPECT_EQ(next_errno(Call::kRead), EIO);
    EXPECT_EQ(next_errno(Call::kRead), 0);
}

TEST_F(Inject, ErrnoZeroMeansShort) {
    arm(Call::kWrite, 0, 0, 1);
    EXPECT_EQ(next_errno(Call::kWrite), kShort);
    EXPECT_EQ(next_errno(Call::kWrite), 0);
}

TEST_F(Inject, ANewRuleReplacesTheOld) {
    arm(Call::kOpen, EIO);
    arm(Call::kOpen, EMFILE, 1);
    EXPECT_EQ(next_errno(Call::kOpen), 0);
    EXPECT_EQ(next_errno(Call::kOpen), EMFILE);
}

TEST_F(Inject, CountsExactlyAcrossThreads) {
    constexpr uint64_t kTimes = 1000;
    arm(Call::kMove, EAGAIN, 500, kTimes);
    std::atomic<uint64_t> hits = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int call = 0; call < 1000; ++call)
                hits += next_errno(Call::kMove) == EAGAIN ? 1 : 0;
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(hits, kTimes);
}

}  // namespace
}  // namespace hanare::sys::inject
