// SPDX-License-Identifier: Apache-2.0
//
// Pools from inside: races between calls and what a failed call leaves behind.
#include "pager/pool.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "pager/test_pool.hpp"

namespace hanare::pager {
namespace {

uint64_t* alloc(Pool& pool, uint64_t bytes) {
    auto memory = pool.alloc(bytes, 0);
    EXPECT_TRUE(memory) << memory.error().text;
    return memory ? static_cast<uint64_t*>(*memory) : nullptr;
}

// libc makes every thread take part when the process changes its user; the keeper, too.
TEST(Pool, LetsTheProcessChangeItsUser) {
    const auto pool = open_test_pool(8 * kMiB, 64 * kKiB);
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(setuid(getuid()), 0);
    EXPECT_EQ(setgid(getgid()), 0);
}

TEST(Pool, AFailedAllocOfLargeBlocksChangesNothing) {
    const auto pool = open_test_pool(70 * kMiB, 64 * kKiB);
    ASSERT_NE(pool, nullptr);
    uint64_t* pinned = alloc(*pool, 8 * kMiB);
    ASSERT_TRUE(pool->pin(pinned, 8 * kMiB, HANARE_ACCESS_WRITE));
    const auto refused = pool->alloc(64 * kMiB, 4 * kMiB);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status, HANARE_STATUS_LIMIT);
    uint64_t* second = alloc(*pool, 8 * kMiB);
    EXPECT_TRUE(pool->pin(second, 8 * kMiB, HANARE_ACCESS_WRITE));
    EXPECT_TRUE(pool->unpin(second, 8 * kMiB));
    EXPECT_TRUE(pool->unpin(pinned, 8 * kMiB));
}

TEST(Pool, FlushesWhileAnotherThreadFreesARegion) {
    const auto pool = open_test_pool(8 * kMiB, 64 * kKiB);
    ASSERT_NE(pool, nullptr);
    uint64_t* kept = alloc(*pool, 4 * kMiB);
    std::atomic<bool> stop{false};
    std::thread flusher([&] {
        while (!stop.load()) EXPECT_TRUE(pool->flush(nullptr, 0));
    });
    for (uint64_t round = 1; round <= 300; ++round) {
        uint64_t* passing = alloc(*pool, kMiB);
        std::fill_n(passing, kMiB / sizeof(uint64_t), round);
        std::fill_n(kept, kMiB / sizeof(uint64_t), round);
        EXPECT_TRUE(pool->free(passing));
    }
    stop = true;
    flusher.join();
    EXPECT_EQ(std::count(kept, kept + kMiB / sizeof(uint64_t), 300u),
              static_cast<long>(kMiB / sizeof(uint64_t)));
}

// More threads pin than the limit allows, all the same few blocks: the account must come out even.
TEST(Pool, PinsThatRaceAtTheLimitAreAccountedFor) {
    constexpr uint64_t kBlock = 64 * kKiB;
    const auto pool = open_test_pool(22 * (kBlock + kKiB), kBlock);
    ASSERT_NE(pool, nullptr);
    auto* held = reinterpret_cast<std::byte*>(alloc(*pool, 12 * kBlock));
    std::byte* memory = held + 4 * kBlock;
    ASSERT_TRUE(pool->pin(held, 4 * kBlock, HANARE_ACCESS_READ));
    std::vector<std::thread> threads;
    std::atomic<uint64_t> refused{0};
    for (uint64_t thread = 0; thread < 6; ++thread) {
        threads.emplace_back([&, thread] {
            for (uint64_t i = 0; i < 20'000; ++i) {
                std::byte* block = memory + (i * (thread + 1)) % 8 * kBlock;
                if (pool->pin(block, 1, HANARE_ACCESS_READ)) {
                    EXPECT_TRUE(pool->unpin(block, 1));
                } else {
                    ++refused;
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_GT(refused.load(), 0u) << "the limit was never reached";
    EXPECT_TRUE(pool->unpin(held, 4 * kBlock));
    EXPECT_TRUE(pool->check_unpinned());
    EXPECT_TRUE(pool->pin(memory, 1, HANARE_ACCESS_READ));
    EXPECT_TRUE(pool->unpin(memory, 1));
}

// The reader dies of it; what matters is that nobody waits for ever, so this happens in a child.
TEST(Pool, EndsWhileAnotherThreadFaults) {
    for (int round = 0; round < 10; ++round) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            signal(SIGBUS, [](int) { _exit(0); });
            signal(SIGSEGV, [](int) { _exit(0); });
            auto pool = open_test_pool(8 * kMiB, 64 * kKiB);
            volatile uint64_t* memory = alloc(*pool, 64 * kMiB);
            std::atomic<uint64_t> touched{0};
            std::thread reader([&] {
                for (uint64_t i = 0;; i = (i + 512) % (8 * kMiB)) {
                    memory[i] = i;
                    touched.fetch_add(1);
                    touched.notify_one();
                }
            });
            reader.detach();
            for (uint64_t seen = 0; (seen = touched.load()) < 20'000;) touched.wait(seen);
            pool.reset();
            _exit(0);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    }
}

}  // namespace
}  // namespace hanare::pager
