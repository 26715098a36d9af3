// SPDX-License-Identifier: Apache-2.0
#include "sys/process_lock.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "sys/test_support.hpp"

namespace hanare::sys {
namespace {

TEST(ProcessLockTest, LetsOneThreadInAtATime) {
    ProcessLock lock;
    uint64_t count = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int k = 0; k < 20000; ++k) {
                const ProcessLockGuard guard(lock);
                ++count;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(count, 80000u);
}

TEST(ProcessLockTest, IsFreeInAChildWhoseParentHoldsIt) {
    ProcessLock lock;
    const ProcessLockGuard held(lock);
    EXPECT_EQ(testing::run_in_child([&] {
                  alarm(10);
                  const ProcessLockGuard guard(lock);
                  return std::string();
              }),
              "");
}

}  // namespace
}  // namespace hanare::sys
