// SPDX-License-Identifier: Apache-2.0
#include "sys/lock.hpp"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace hanare::sys {
namespace {

TEST(RankedLock, ExcludesThreads) {
    constexpr int kThreads = 4;
    constexpr int kRounds = 50'000;
    RankedLock lock(LockRank::kLeaf);
    long count = 0;  // not atomic: lost updates would show
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&] {
            for (int round = 0; round < kRounds; ++round) {
                const LockGuard guard(lock);
                ++count;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(count, long{kThreads} * kRounds);
}

TEST(RankedLock, TryLockFailsWhileHeldAndWorksAfterwards) HANARE_NO_THREAD_SAFETY_ANALYSIS {
    RankedLock lock(LockRank::kLeaf);
    lock.lock();
    bool taken = true;
    std::thread([&]() HANARE_NO_THREAD_SAFETY_ANALYSIS { taken = lock.try_lock(); }).join();
    EXPECT_FALSE(taken);
    lock.unlock();
    ASSERT_TRUE(lock.try_lock());
    lock.unlock();
}

TEST(RankedLock, SleeperIsWokenByUnlock) {
    RankedLock lock(LockRank::kLeaf);
    std::atomic<bool> entered = false;
    std::thread sleeper;
    {
        const LockGuard guard(lock);
        sleeper = std::thread([&] {
            const LockGuard inner(lock);
            entered = true;
        });
        // Longer than it spins; were it still spinning, the test would pass for a weaker reason.
        for (SpinWait wait; wait.spin();) std::this_thread::yield();
        EXPECT_FALSE(entered);
    }
    sleeper.join();
    EXPECT_TRUE(entered);
}

TEST(RankedLock, RisingRanksAreAllowed) {
    RankedLock pool(LockRank::kPool);
    RankedLock frames(LockRank::kFrames);
    for (int round = 0; round < 2; ++round) {
        const LockGuard outer(pool);
        const LockGuard inner(frames);
    }
}

TEST(RankedLockDeathTest, FallingRanksAreFoundInCheckedBuilds) {
#if defined(HANARE_CHECK_LOCK_RANKS)
    RankedLock pool(LockRank::kPool);
    RankedLock frames(LockRank::kFrames);
    EXPECT_DEATH(
        {
            const LockGuard outer(frames);
            const LockGuard inner(pool);
        },
        "held_rank < rank_");
#else
    GTEST_SKIP() << "ranks are checked in debug builds and with HANARE_CHECKED only";
#endif
}

TEST(SpinWait, Ends) {
    SpinWait wait;
    int turns = 0;
    while (wait.spin()) ++turns;
    EXPECT_GT(turns, 0);
    EXPECT_FALSE(wait.spin());
}

}  // namespace
}  // namespace hanare::sys
