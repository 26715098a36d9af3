// SPDX-License-Identifier: Apache-2.0
//
// Faults of every kind, with traps on allocation and on mutexes inside the handler.
#include <atomic>
#include <functional>
#include <set>
#include <vector>

#include "api/far_pool.hpp"
#include "api/handler_trap.hpp"
#include "base/prng.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 16 * kKiB;
constexpr uint64_t kBlocks = 96;
constexpr uint64_t kBytes = kBlocks * kBlock;

class HandlerTrapTest : public EngineTest {};
API_TEST_WITH_ENGINES(HandlerTrapTest);

TEST_P(HandlerTrapTest, TheTrapsWork) {
    FarPool pool(setup(kBlock), 32, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    std::set<std::string> seen;
    uint64_t block = 0;
    for (const Provocation what :
         {Provocation::kMalloc, Provocation::kRealloc, Provocation::kFree, Provocation::kCalloc,
          Provocation::kFree, Provocation::kAligned, Provocation::kFree, Provocation::kNew,
          Provocation::kLock, Provocation::kTryLock}) {
        const uint64_t before = trapped_calls();
        provoke(what);
        poke(region, kBlock, block++, 1);
        EXPECT_GT(trapped_calls(), before) << static_cast<int>(what);
        seen.insert(last_trapped_call());
    }
    EXPECT_EQ(seen, (std::set<std::string>{"malloc", "realloc", "free", "calloc", "posix_memalign",
                                           "operator new", "pthread_mutex_lock",
                                           "pthread_mutex_unlock"}));
    // Outside a handler nothing is trapped.
    const uint64_t before = trapped_calls();
    pool.stats();
    delete new std::vector<int>(100);
    EXPECT_EQ(trapped_calls(), before);
}

// Faults that wait: all threads want the same absent block at the same moment.
void collide(FarPool& pool, std::byte* region) {
    constexpr uint64_t kThreads = 4;
    const auto waits = [&] { return pool.stats().wait_faults; };
    for (int round = 0; round < 2000 && waits() == 0; ++round) {
        pool.make_absent(region, 8 * kBlock);
        std::atomic<uint64_t> ready{0};
        const auto body = [&] {
            ++ready;
            while (ready < kThreads) {
            }
            for (uint64_t i = 0; i < 8; ++i) touch(region, kBlock, i);
        };
        run_threads({body, body, body, body});
    }
}

void mixed_work(std::byte* region, uint64_t seed) {
    Prng random(seed);
    for (int i = 0; i < 3000; ++i) {
        const uint64_t block = random.below(kBlocks);
        if (random.below(2) == 0) touch(region, kBlock, block);
        if (random.below(2) == 0) {
            std::atomic_ref(*reinterpret_cast<uint64_t*>(region + block * kBlock)).fetch_add(1);
        }
    }
}

TEST_P(HandlerTrapTest, NoFaultAllocatesOrLocks) {
    FarPool pool(setup(kBlock), kFramesMin + 4, 2 * kBytes, 8);
    std::byte* const region = pool.alloc(kBytes);
    std::byte* const pages = pool.alloc(kBytes, 4 * kKiB);  // frames change their size
    const uint64_t before = trapped_calls();
    for (uint64_t i = 0; i < kBlocks; ++i) touch(region, kBlock, i);
    for (uint64_t i = 0; i < kBlocks; ++i) poke(region, kBlock, i, i);
    for (uint64_t i = 0; i < kBytes; i += 4 * kKiB) pages[i] = std::byte{1};
    for (uint64_t i = 0; i < kBlocks; ++i) touch(region, kBlock, i);
    for (uint64_t i = 0; i < 4; ++i) poke(region, kBlock, kBlocks - 1 - i, i);
    must(hanare_prefetch(pool.get(), region, 4 * kBlock));
    ASSERT_TRUE(eventually([&] { return pool.stats().prefetch_reads > 0; }));
    for (uint64_t i = 0; i < 4; ++i) touch(region, kBlock, i);
    std::vector<std::function<void()>> bodies;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
        bodies.push_back([=] { mixed_work(region, seed); });
    }
    run_threads(bodies);
    collide(pool, region);
    EXPECT_EQ(trapped_calls(), before) << last_trapped_call();
    const hanare_counters stats = pool.stats();
    EXPECT_GT(stats.zero_fills, 0u);
    EXPECT_GT(stats.demand_reads, 0u);
    EXPECT_GT(stats.staged_hits, 0u);
    EXPECT_GT(stats.upgrade_faults, 0u);
    EXPECT_GT(stats.evictions_inline, 0u);
    EXPECT_GT(stats.wait_faults, 0u);
    EXPECT_GT(stats.write_backs, 0u);
}

}  // namespace

}  // namespace hanare::api_test
