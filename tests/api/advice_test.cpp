// SPDX-License-Identifier: Apache-2.0
//
// What each advice does, as far as a program can see it.
#include <algorithm>
#include <numeric>
#include <thread>

#include "api/far_pool.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 64 * kKiB;
constexpr uint64_t kBlocks = 48;
constexpr uint64_t kBytes = kBlocks * kBlock;
constexpr uint64_t kFrames = 32;
constexpr uint32_t kReadAhead = 8;

// A region whose blocks are all absent and hold fill(.., 5).
class AdviceTest : public EngineTest {
protected:
    void open(uint32_t read_ahead_blocks) {
        pool_ = std::make_unique<FarPool>(setup(kBlock), kFrames, kBytes, read_ahead_blocks);
        region_ = pool_->alloc(kBytes);
        advise(HANARE_ADVICE_RANDOM);  // no request for read-ahead is left over from this
        fill(words(), kBytes, 5);
        advise(HANARE_ADVICE_NORMAL);
        pool_->make_absent(region_, kBytes);
        before_ = pool_->stats();
        ASSERT_EQ(before_.resident_bytes, 0u);
    }

    uint64_t* words() { return reinterpret_cast<uint64_t*>(region_); }
    void advise(hanare_advice advice) { must(hanare_advise(pool_->get(), region_, 1, advice)); }
    void touch_blocks(uint64_t first, uint64_t count) {
        for (uint64_t i = first; i < first + count; ++i) {
            EXPECT_EQ(touch(region_, kBlock, i), pattern(5, i * kBlock / sizeof(uint64_t)));
        }
    }
    uint64_t prefetched() { return pool_->stats().prefetch_reads - before_.prefetch_reads; }
    uint64_t demanded() { return pool_->stats().demand_reads - before_.demand_reads; }
    uint64_t parts_demanded() { return pool_->stats().part_reads - before_.part_reads; }
    bool prefetched_reaches(uint64_t count) {
        return eventually([&] { return prefetched() >= count; });
    }

    std::unique_ptr<FarPool> pool_;
    std::byte* region_ = nullptr;
    hanare_counters before_ = {};
};

API_TEST_WITH_ENGINES(AdviceTest);

TEST_P(AdviceTest, WillNeedSavesTheDemandReads) {
    open(HANARE_READ_AHEAD_OFF);
    must(hanare_advise(pool_->get(), region_, 8 * kBlock, HANARE_ADVICE_WILLNEED));
    ASSERT_TRUE(prefetched_reaches(8));
    touch_blocks(0, 8);
    EXPECT_EQ(demanded(), 0u);
    EXPECT_EQ(prefetched(), 8u);
    EXPECT_EQ(pool_->stats().staged_hits - before_.staged_hits, 8u);
}

TEST_P(AdviceTest, PrefetchOfAMiddlePieceTakesItsBlocksOnly) {
    open(HANARE_READ_AHEAD_OFF);
    must(hanare_prefetch(pool_->get(), region_ + 3 * kBlock + 100, kBlock));
    ASSERT_TRUE(prefetched_reaches(2));
    touch_blocks(3, 2);
    EXPECT_EQ(demanded(), 0u);
    touch_blocks(2, 1);
    touch_blocks(5, 1);
    EXPECT_EQ(demanded(), 2u);
    EXPECT_EQ(prefetched(), 2u);
}

TEST_P(AdviceTest, PrefetchedBlocksThatAreWrittenKeepTheRest) {
    open(HANARE_READ_AHEAD_OFF);
    must(hanare_prefetch(pool_->get(), region_, 4 * kBlock));
    ASSERT_TRUE(prefetched_reaches(4));
    words()[1] = 99;
    pool_->make_absent(region_, kBytes);
    EXPECT_EQ(words()[1], 99u);
    words()[1] = pattern(5, 1);
    EXPECT_EQ(mismatches(words(), kBytes, 5), 0u);
}

TEST_P(AdviceTest, MorePrefetchThanFramesIsOnlyAdvice) {
    open(HANARE_READ_AHEAD_OFF);
    must(hanare_prefetch(pool_->get(), region_, kBytes));
    ASSERT_TRUE(prefetched_reaches(1));
    EXPECT_EQ(mismatches(words(), kBytes, 5), 0u);
    const hanare_counters stats = pool_->stats();
    EXPECT_LE(stats.resident_bytes + stats.metadata_bytes, stats.budget_bytes);
}

TEST_P(AdviceTest, SequentialReadsAheadFromTheFirstFault) {
    open(kReadAhead);
    advise(HANARE_ADVICE_SEQUENTIAL);
    touch_blocks(0, 1);
    EXPECT_TRUE(prefetched_reaches(1));
}

TEST_P(AdviceTest, NormalFindsTheStreamByItself) {
    open(kReadAhead);
    touch_blocks(7, 1);
    touch_blocks(8, 1);
    EXPECT_TRUE(prefetched_reaches(1));
}

TEST_P(AdviceTest, NormalFindsABackwardStream) {
    open(kReadAhead);
    touch_blocks(40, 1);
    touch_blocks(39, 1);
    EXPECT_TRUE(prefetched_reaches(1));
    pool_->make_absent(region_, kBytes);
}

// The explicit prefetch at the end is served after everything that was asked for before it.
TEST_P(AdviceTest, RandomNeverReadsAhead) {
    open(kReadAhead);
    advise(HANARE_ADVICE_RANDOM);
    touch_blocks(0, 24);
    EXPECT_EQ(demanded(), serves_parts(GetParam()) ? 0u : 24u);
    EXPECT_EQ(parts_demanded(), serves_parts(GetParam()) ? 24u : 0u);
    must(hanare_prefetch(pool_->get(), region_ + 40 * kBlock, kBlock));
    ASSERT_TRUE(prefetched_reaches(1));
    EXPECT_EQ(prefetched(), 1u);
    advise(HANARE_ADVICE_NORMAL);
    touch_blocks(30, 1);
    touch_blocks(31, 1);
    EXPECT_TRUE(prefetched_reaches(2));
}

TEST_P(AdviceTest, ReadAheadOffNeverReadsAhead) {
    open(HANARE_READ_AHEAD_OFF);
    advise(HANARE_ADVICE_SEQUENTIAL);
    touch_blocks(0, 24);
    EXPECT_EQ(demanded(), 24u);
    must(hanare_prefetch(pool_->get(), region_ + 40 * kBlock, kBlock));
    ASSERT_TRUE(prefetched_reaches(1));
    EXPECT_EQ(prefetched(), 1u);
}

TEST_P(AdviceTest, DontNeedReleasesItsBlocksAndKeepsTheData) {
    open(HANARE_READ_AHEAD_OFF);
    for (uint64_t i = 0; i < 16; ++i) poke(region_, kBlock, i, 1000 + i);
    EXPECT_EQ(pool_->stats().resident_bytes, 16 * kBlock);
    must(hanare_advise(pool_->get(), region_ + 4 * kBlock, 8 * kBlock, HANARE_ADVICE_DONTNEED));
    const hanare_counters stats = pool_->stats();
    EXPECT_EQ(stats.resident_bytes, 8 * kBlock);
    EXPECT_EQ(stats.dirty_bytes, 8 * kBlock);
    EXPECT_EQ(stats.write_backs - before_.write_backs, 8u);
    for (uint64_t i = 0; i < 16; ++i) EXPECT_EQ(touch(region_, kBlock, i), 1000 + i);
}

TEST_P(AdviceTest, DontNeedSkipsPinnedBlocks) {
    open(HANARE_READ_AHEAD_OFF);
    must(hanare_pin(pool_->get(), region_ + kBlock, kBlock, HANARE_ACCESS_WRITE));
    poke(region_, kBlock, 1, 77);
    touch_blocks(0, 1);
    pool_->make_absent(region_, kBytes);
    EXPECT_EQ(pool_->stats().resident_bytes, kBlock);
    const hanare_counters pinned = pool_->stats();
    EXPECT_EQ(touch(region_, kBlock, 1), 77u);
    EXPECT_EQ(pool_->stats().read_faults, pinned.read_faults);
    must(hanare_unpin(pool_->get(), region_ + kBlock, kBlock));
    pool_->make_absent(region_, kBytes);
    EXPECT_EQ(pool_->stats().resident_bytes, 0u);
    EXPECT_EQ(touch(region_, kBlock, 1), 77u);
}

TEST_P(AdviceTest, DiscardedBlocksAreZerosThatNobodyReadsOrWrites) {
    open(HANARE_READ_AHEAD_OFF);
    touch_blocks(0, 8);                                             // clean
    for (uint64_t i = 8; i < 16; ++i) poke(region_, kBlock, i, i);  // dirty
    must(hanare_advise(pool_->get(), region_, 24 * kBlock, HANARE_ADVICE_DISCARD));
    const hanare_counters discarded = pool_->stats();
    EXPECT_EQ(discarded.resident_bytes, 0u);
    EXPECT_EQ(discarded.dirty_bytes, 0u);
    for (uint64_t i = 0; i < 24; ++i) poke(region_, kBlock, i, i + 1);
    for (uint64_t i = 0; i < 24; ++i) EXPECT_EQ(touch(region_, kBlock, i), i + 1);
    EXPECT_EQ(std::accumulate(words(), words() + 24 * kBlock / sizeof(uint64_t), uint64_t{0}),
              24u * 25 / 2);
    const hanare_counters stats = pool_->stats();
    EXPECT_EQ(stats.read_bytes, discarded.read_bytes);
    EXPECT_EQ(discarded.written_bytes, before_.written_bytes);
    touch_blocks(24, kBlocks - 24);
    pool_->make_absent(region_, kBytes);
    for (uint64_t i = 0; i < 24; ++i) EXPECT_EQ(touch(region_, kBlock, i), i + 1);
}

TEST_P(AdviceTest, DiscardedPartsAreZeros) {
    open(HANARE_READ_AHEAD_OFF);
    advise(HANARE_ADVICE_RANDOM);
    for (uint64_t i = 0; i < 8; ++i) poke(region_, kBlock, i, 1000 + i);
    touch_blocks(8, 8);
    must(hanare_advise(pool_->get(), region_, 12 * kBlock, HANARE_ADVICE_DISCARD));
    EXPECT_EQ(pool_->stats().dirty_bytes, 0u);
    const auto* end = words() + 12 * kBlock / sizeof(uint64_t);
    EXPECT_EQ(std::count(const_cast<const uint64_t*>(words()), end, 0u), end - words());
    touch_blocks(12, 4);
}

TEST_P(AdviceTest, DiscardKeepsBlocksThatAreNotWhollyInTheRange) {
    open(HANARE_READ_AHEAD_OFF);
    must(hanare_advise(pool_->get(), region_ + 1, 2 * kBlock, HANARE_ADVICE_DISCARD));
    touch_blocks(0, 1);
    EXPECT_EQ(touch(region_, kBlock, 1), 0u);
    touch_blocks(2, 1);
    must(hanare_advise(pool_->get(), region_ + 4 * kBlock + 8, kBlock - 8, HANARE_ADVICE_DISCARD));
    touch_blocks(4, 1);
}

TEST_P(AdviceTest, DiscardEndsWithTheRegion) {
    open(HANARE_READ_AHEAD_OFF);
    std::byte* small = pool_->alloc(kBlock + 100);
    small[kBlock + 99] = std::byte{1};
    must(hanare_advise(pool_->get(), small + kBlock, 99, HANARE_ADVICE_DISCARD));
    EXPECT_EQ(small[kBlock + 99], std::byte{1});
    must(hanare_advise(pool_->get(), small + kBlock, 100, HANARE_ADVICE_DISCARD));
    EXPECT_EQ(small[kBlock + 99], std::byte{0});
}

TEST_P(AdviceTest, DiscardSkipsPinnedBlocks) {
    open(HANARE_READ_AHEAD_OFF);
    must(hanare_pin(pool_->get(), region_ + kBlock, kBlock, HANARE_ACCESS_READ));
    must(hanare_advise(pool_->get(), region_, 3 * kBlock, HANARE_ADVICE_DISCARD));
    EXPECT_EQ(touch(region_, kBlock, 0), 0u);
    touch_blocks(1, 1);
    EXPECT_EQ(touch(region_, kBlock, 2), 0u);
    must(hanare_unpin(pool_->get(), region_ + kBlock, kBlock));
}

// While another thread uses the blocks beside them, and what is read ahead arrives.
TEST_P(AdviceTest, DiscardAgreesWithAStreamBesideIt) {
    open(kReadAhead);
    for (int round = 0; round < 20; ++round) {
        std::thread stream([&] { touch_blocks(kBlocks / 2, kBlocks / 2); });
        for (uint64_t i = 0; i < kBlocks / 2; ++i) poke(region_, kBlock, i, 1 + i);
        must(hanare_prefetch(pool_->get(), region_, kBytes / 4));
        must(hanare_advise(pool_->get(), region_, kBytes / 2, HANARE_ADVICE_DISCARD));
        for (uint64_t i = 0; i < kBlocks / 2; ++i) EXPECT_EQ(touch(region_, kBlock, i), 0u);
        stream.join();
    }
}

}  // namespace

}  // namespace hanare::api_test
