// SPDX-License-Identifier: Apache-2.0
#include "hook/disposition.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace hanare::hook {
namespace {

// Dispositions whose parts belong together.
Disposition numbered(uintptr_t number) {
    return {number, number * 3, static_cast<uint32_t>(number) * 2};
}
bool belongs_together(const Disposition& disposition) {
    return disposition.mask == disposition.handler * 3 &&
           disposition.flags == static_cast<uint32_t>(disposition.handler) * 2;
}

TEST(DispositionCell, BeginsWithTheDefault) {
    constinit static DispositionCell cell;
    EXPECT_TRUE(cell.read().is_default());
    EXPECT_FALSE(cell.take_for_delivery().has_handler());
}

TEST(DispositionCell, NeverTearsAndReturnsEachValueOnce) {
    constexpr uintptr_t kThreads = 4;
    constexpr uintptr_t kWrites = 20000;
    static DispositionCell cell;
    std::atomic<int> torn{0};
    std::vector<std::atomic<int>> returned(kThreads * kWrites + 1);
    std::vector<std::thread> threads;
    for (uintptr_t thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
            for (uintptr_t i = 0; i < kWrites; ++i) {
                const Disposition old = cell.exchange(numbered(thread * kWrites + i + 1));
                if (!belongs_together(old) || !belongs_together(cell.read())) torn.fetch_add(1);
                returned[old.handler].fetch_add(1);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(torn, 0);
    returned[cell.read().handler].fetch_add(1);
    for (size_t i = 0; i < returned.size(); ++i) ASSERT_EQ(returned[i], 1) << i;
}

TEST(DispositionCell, DeliversAOneShotHandlerOnce) {
    constexpr int kRounds = 2000;
    static DispositionCell cell;
    Disposition one_shot;
    one_shot.handler = 4096;
    one_shot.flags = SA_RESETHAND;
    std::atomic<int> delivered{0};
    for (int round = 0; round < kRounds; ++round) {
        cell.exchange(one_shot);
        const auto take = [&] {
            if (cell.take_for_delivery().has_handler()) delivered.fetch_add(1);
        };
        std::thread other(take);
        take();
        other.join();
        ASSERT_EQ(delivered, round + 1);
    }
}

}  // namespace
}  // namespace hanare::hook
