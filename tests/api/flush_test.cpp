// SPDX-License-Identifier: Apache-2.0
//
// Flush: afterwards the store has everything, and nothing else has changed.
#include <atomic>
#include <functional>
#include <vector>

#include "api/far_pool.hpp"
#include "base/prng.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 64 * kKiB;
constexpr uint64_t kBlocks = 40;
constexpr uint64_t kBytes = kBlocks * kBlock;

class FlushTest : public EngineTest {
protected:
    // A thread that waits in the kernel may report its last write twice, and late.
    static uint64_t late_blocks() { return serves_system_calls(GetParam()) ? 1 : 0; }
};
API_TEST_WITH_ENGINES(FlushTest);

TEST_P(FlushTest, CleansEverythingAndKeepsItResident) {
    FarPool pool(setup(kBlock), 64, 2 * kBytes);
    uint64_t* const a = pool.alloc_words(kBytes);
    uint64_t* const b = pool.alloc_words(kBlock);
    fill(a, kBytes, 1);
    fill(b, kBlock, 2);
    EXPECT_EQ(pool.stats().dirty_bytes, kBytes + kBlock);
    must(hanare_flush(pool.get(), nullptr, 0));
    const hanare_counters stats = pool.stats();
    EXPECT_LE(stats.dirty_bytes, late_blocks() * kBlock);
    EXPECT_EQ(stats.resident_bytes, kBytes + kBlock);
    EXPECT_EQ(mismatches(a, kBytes, 1), 0u);
    EXPECT_EQ(mismatches(b, kBlock, 2), 0u);
    EXPECT_EQ(pool.stats().demand_reads, 0u);
    must(hanare_flush(pool.get(), nullptr, 0));
    EXPECT_GE(pool.stats().write_backs, kBlocks + 1);
    EXPECT_LE(pool.stats().write_backs, kBlocks + 1 + late_blocks());
}

TEST_P(FlushTest, WritesTheBlocksOfItsRangeOnly) {
    FarPool pool(setup(kBlock), 64, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    for (uint64_t i = 0; i < kBlocks; ++i) poke(region, kBlock, i, i);
    must(hanare_flush(pool.get(), region + 3 * kBlock + 5, kBlock));
    EXPECT_EQ(pool.stats().write_backs, 2u);
    EXPECT_EQ(pool.stats().dirty_bytes, (kBlocks - 2) * kBlock);
    for (uint64_t i = 0; i < kBlocks; ++i) EXPECT_EQ(touch(region, kBlock, i), i);
}

TEST_P(FlushTest, ReportsPinnedDirtyBlocksAfterWritingTheOthers) {
    FarPool pool(setup(kBlock), 64, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    for (uint64_t i = 0; i < kBlocks; ++i) poke(region, kBlock, i, i);
    must(hanare_pin(pool.get(), region + kBlock, 2 * kBlock, HANARE_ACCESS_WRITE));
    EXPECT_TRUE(fails_with(HANARE_STATUS_BUSY, {"2 dirty blocks are pinned"},
                           hanare_flush(pool.get(), nullptr, 0)));
    EXPECT_GE(pool.stats().dirty_bytes, 2 * kBlock);
    EXPECT_LE(pool.stats().dirty_bytes, (2 + late_blocks()) * kBlock);
    must(hanare_unpin(pool.get(), region + kBlock, 2 * kBlock));
    must(hanare_flush(pool.get(), region, kBytes));
    EXPECT_EQ(pool.stats().dirty_bytes, 0u);
    // A clean pinned block is no obstacle.
    must(hanare_pin(pool.get(), region, kBlock, HANARE_ACCESS_READ));
    must(hanare_flush(pool.get(), nullptr, 0));
    must(hanare_unpin(pool.get(), region, kBlock));
}

// Writers count up words of their own, spread over all blocks, while others flush and drop.
TEST_P(FlushTest, FlushesFromSeveralThreadsLoseNoWrite) {
    constexpr uint64_t kSmallBlock = 8 * kKiB;
    constexpr uint64_t kSmallBlocks = 48;
    constexpr uint64_t kRegionBytes = kSmallBlocks * kSmallBlock;
    constexpr uint64_t kWriters = 3;
    constexpr uint64_t kWrites = 6000;
    FarPool pool(setup(kSmallBlock), kFramesMin + 4, kRegionBytes, 4);
    uint64_t* const words = pool.alloc_words(kRegionBytes);
    std::atomic<uint64_t> writers_left{kWriters};
    std::vector<std::function<void()>> bodies;
    for (uint64_t writer = 0; writer < kWriters; ++writer) {
        bodies.push_back([&, writer] {
            Prng random(writer + 1);
            for (uint64_t i = 0; i < kWrites; ++i) {
                const uint64_t block = random.below(kSmallBlocks);
                ++words[block * (kSmallBlock / sizeof(uint64_t)) + writer];
            }
            --writers_left;
        });
    }
    for (uint64_t flusher = 0; flusher < 3; ++flusher) {
        bodies.push_back([&, flusher] {
            while (writers_left > 0) {
                const std::byte* const part =
                    reinterpret_cast<std::byte*>(words) + flusher * kRegionBytes / 4;
                must(hanare_flush(pool.get(), nullptr, 0));
                must(hanare_flush(pool.get(), part, kRegionBytes / 4));
                must(hanare_advise(pool.get(), part, kRegionBytes / 4, HANARE_ADVICE_DONTNEED));
            }
        });
    }
    run_threads(bodies);
    must(hanare_flush(pool.get(), nullptr, 0));
    EXPECT_EQ(pool.stats().dirty_bytes, 0u);
    pool.make_absent(words, kRegionBytes);
    for (uint64_t writer = 0; writer < kWriters; ++writer) {
        uint64_t sum = 0;
        for (uint64_t block = 0; block < kSmallBlocks; ++block) {
            sum += words[block * (kSmallBlock / sizeof(uint64_t)) + writer];
        }
        EXPECT_EQ(sum, kWrites) << "writer " << writer;
    }
}

}  // namespace

}  // namespace hanare::api_test
