// SPDX-License-Identifier: Apache-2.0
//
// Whether the keeper works ahead of need, as the counters show it.
#include "api/far_pool.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 64 * kKiB;
constexpr uint64_t kBlocks = 96;
constexpr uint64_t kBytes = kBlocks * kBlock;
constexpr uint64_t kFrames = 24;
constexpr uint32_t kReadAhead = 16;

class BackgroundTest : public EngineTest {
protected:
    // A region that was written and then read, several times larger than the budget.
    hanare_counters stream_through(const char* background) {
        const sys::testing::TemporaryDirectory directory;
        PoolConfig config;
        config.engine = GetParam();
        config.store = "file:" + directory.path();
        config.options.block_bytes = kBlock;
        config.options.local_bytes = budget_for(kFrames, kBlock, kBytes);
        config.options.read_ahead_blocks = kReadAhead;
        config.options.background = background;
        pool_ = std::make_unique<FarPool>(config);
        words_ = pool_->alloc_words(kBytes);
        fill(words_, kBytes, 1);
        EXPECT_EQ(mismatches(words_, kBytes, 1), 0u);
        return pool_->stats();
    }

    std::unique_ptr<FarPool> pool_;
    uint64_t* words_ = nullptr;
};
API_TEST_WITH_ENGINES(BackgroundTest);

TEST_P(BackgroundTest, OffLeavesAllToFaults) {
    const hanare_counters stats = stream_through("off");
    EXPECT_GT(stats.demand_reads + stats.prefetch_reads, kBlocks / 2);
    EXPECT_EQ(stats.evictions_inline, stats.write_backs + stats.clean_drops);
    EXPECT_EQ(stats.evictions_inline + stats.prefetch_unused,
              stats.zero_fills + stats.demand_reads + stats.prefetch_reads -
                  stats.resident_bytes / kBlock);
}

TEST_P(BackgroundTest, OnReadsAheadAndEvictsBesideTheProgram) {
    EXPECT_GT(stream_through("on").prefetch_reads, 0u);
    EXPECT_TRUE(eventually([&] {
        fill(words_, kBytes, 1);
        const hanare_counters stats = pool_->stats();
        return stats.evictions_inline < stats.write_backs + stats.clean_drops;
    }));
}

// The store gets what will not fit before room is short, and the content stays where it is.
TEST_P(BackgroundTest, WritesAheadWhatIsWrittenForTheFirstTime) {
    constexpr uint64_t kRoomyFrames = 64;
    constexpr uint64_t kWritten = 48;
    FarPool pool(setup(kBlock), kRoomyFrames, kBytes);
    uint64_t* const words = pool.alloc_words(kBytes);
    fill(words, kWritten * kBlock, 1);
    EXPECT_TRUE(eventually([&] { return pool.stats().write_backs >= kWritten / 2; }));
    EXPECT_EQ(pool.stats().resident_bytes, kWritten * kBlock);
    EXPECT_EQ(mismatches(words, kWritten * kBlock, 1), 0u);
    EXPECT_EQ(pool.stats().demand_reads, 0u);
    EXPECT_LE(pool.stats().write_backs, kWritten) << "each once";

    must(hanare_free(pool.get(), words));
    uint64_t* const fitting = pool.alloc_words(kWritten * kBlock);
    const uint64_t before = pool.stats().write_backs;
    fill(fitting, kWritten * kBlock, 2);
    EXPECT_EQ(mismatches(fitting, kWritten * kBlock, 2), 0u);
    EXPECT_EQ(pool.stats().write_backs, before) << "what fits is not written";
}

// What the program asks for is not optional.
TEST_P(BackgroundTest, OffStillFlushesAndPrefetches) {
    stream_through("off");
    must(hanare_flush(pool_->get(), nullptr, 0));
    EXPECT_EQ(pool_->stats().dirty_bytes, 0u);
    pool_->make_absent(words_, kBytes);
    const uint64_t before = pool_->stats().prefetch_reads;
    must(hanare_prefetch(pool_->get(), words_, 4 * kBlock));
    EXPECT_TRUE(eventually([&] { return pool_->stats().prefetch_reads == before + 4; }));
    EXPECT_EQ(mismatches(words_, kBytes, 1), 0u);
}

}  // namespace

}  // namespace hanare::api_test
