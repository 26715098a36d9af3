// SPDX-License-Identifier: Apache-2.0
//
// Read-ahead that faulting threads start and complete themselves: threads that end, regions that
// end, and many threads that wait for the same reads.
#include <atomic>
#include <thread>
#include <vector>

#include "api/far_pool.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 64 * kKiB;
constexpr uint64_t kBlocks = 256;
constexpr uint64_t kBytes = kBlocks * kBlock;
constexpr uint64_t kWordsPerBlock = kBlock / sizeof(uint64_t);
constexpr uint32_t kReadAhead = 16;

class ReadAheadTest : public EngineTest {
protected:
    void SetUp() override {
        EngineTest::SetUp();
        if (IsSkipped()) return;
        pool_ = std::make_unique<FarPool>(setup(kBlock), kBlocks / 4, 2 * kBytes, kReadAhead);
        words_ = absent_region();
    }

    uint64_t* absent_region() {
        uint64_t* const words = pool_->alloc_words(kBytes);
        fill(words, kBytes, 1);
        pool_->make_absent(words, kBytes);
        return words;
    }

    bool is_right(const uint64_t* words, uint64_t block) const {
        const uint64_t i = block * kWordsPerBlock;
        return const_cast<const volatile uint64_t&>(words[i]) == pattern(1, i);
    }

    std::unique_ptr<FarPool> pool_;
    uint64_t* words_ = nullptr;
};
API_TEST_WITH_ENGINES(ReadAheadTest);

TEST_P(ReadAheadTest, BelongsToNoThread) {
    // Each begins a stream, and ends when its reads have just been started.
    for (uint64_t start = 0; start + 8 < kBlocks; start += 32) {
        std::thread([&] {
            for (uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(is_right(words_, start + i));
        }).join();
    }
    EXPECT_EQ(mismatches(words_, kBytes, 1), 0u);
    EXPECT_GT(pool_->stats(words_).prefetch_reads, 0u);
}

TEST_P(ReadAheadTest, ManyThreadsWaitForTheSameReads) {
    std::atomic<uint64_t> wrong{0};
    for (int round = 0; round < 4; ++round) {
        std::vector<std::thread> threads;
        for (int t = 0; t < 6; ++t) {
            threads.emplace_back([&] {
                for (uint64_t i = 0; i < kBlocks; ++i) wrong += is_right(words_, i) ? 0 : 1;
            });
        }
        for (auto& thread : threads) thread.join();
        pool_->make_absent(words_, kBytes);
    }
    EXPECT_EQ(wrong, 0u);
}

TEST_P(ReadAheadTest, ARegionEndsWhileItIsReadAhead) {
    for (int round = 0; round < 16; ++round) {
        uint64_t* const other = absent_region();
        for (uint64_t i = 0; i < 6; ++i) ASSERT_TRUE(is_right(other, i));
        must(hanare_free(pool_->get(), other));
    }
    EXPECT_EQ(mismatches(words_, kBytes, 1), 0u);
}

TEST_P(ReadAheadTest, PinsAndFlushesMeetReadsInFlight) {
    for (uint64_t start = 0; start + 24 < kBlocks; start += 24) {
        for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(is_right(words_, start + i));
        std::byte* const next = reinterpret_cast<std::byte*>(words_) + (start + 4) * kBlock;
        must(hanare_pin(pool_->get(), next, 4 * kBlock, HANARE_ACCESS_WRITE));
        must(hanare_unpin(pool_->get(), next, 4 * kBlock));
        must(hanare_flush(pool_->get(), words_, kBytes));
        must(hanare_advise(pool_->get(), words_, kBytes, HANARE_ADVICE_DONTNEED));
    }
    EXPECT_EQ(mismatches(words_, kBytes, 1), 0u);
}

// As many arrays that a loop goes through together; each would read ahead what the others' next
// blocks need.
TEST_P(ReadAheadTest, RegionsThatTakeTurnsKeepTheirBlocks) {
    constexpr uint64_t kRegions = 8;
    constexpr uint64_t kRegionBytes = kBytes / kRegions;
    constexpr uint64_t kStepWords = kWordsPerBlock / 32;
    FarPool pool(setup(kBlock), 48, kBytes, 256);
    std::vector<uint64_t*> regions;
    for (uint64_t k = 0; k < kRegions; ++k) {
        regions.push_back(pool.alloc_words(kRegionBytes));
        fill(regions[k], kRegionBytes, k);
        pool.make_absent(regions[k], kRegionBytes);
    }
    const uint64_t before_bytes = pool.stats().read_bytes;
    for (uint64_t i = 0; i < kRegionBytes / sizeof(uint64_t); i += kStepWords) {
        for (uint64_t k = 0; k < kRegions; ++k) {
            ASSERT_EQ(const_cast<const volatile uint64_t&>(regions[k][i]), pattern(k, i));
        }
    }
    EXPECT_LT(pool.stats().read_bytes - before_bytes, 2 * kBytes);
}

// Large enough that one stream is read ahead farther where nothing else uses the device.
class ReadAheadDistanceTest : public EngineTest {
protected:
    static constexpr uint64_t kLargeBlock = 256 * kKiB;
    static constexpr uint64_t kStreamBlocks = 512;
    static constexpr uint64_t kOtherBlocks = 128;
    static constexpr uint64_t kFrames = 1536;   // 384 MiB, so 24 MiB at first, else 4 MiB
    static constexpr uint64_t kFarBlocks = 34;  // between these two, halved or doubled by a trial

    void SetUp() override {
        EngineTest::SetUp();
        if (IsSkipped()) return;
        pool_ = std::make_unique<FarPool>(setup(kLargeBlock), kFrames,
                                          (kStreamBlocks + kOtherBlocks) * kLargeBlock, 256);
        stream_ = absent_blocks(kStreamBlocks);
        other_ = absent_blocks(kOtherBlocks);
        must(hanare_advise(pool_->get(), other_, kOtherBlocks * kLargeBlock, HANARE_ADVICE_RANDOM));
    }

    std::byte* absent_blocks(uint64_t count) {
        std::byte* const region = pool_->alloc(count * kLargeBlock);
        for (uint64_t i = 0; i < count; ++i) poke(region, kLargeBlock, i, i);
        pool_->make_absent(region, count * kLargeBlock);
        return region;
    }

    // Nothing is evicted, so what is there and was not asked for is ahead.
    uint64_t blocks_ahead(uint64_t passed) const {
        return pool_->stats(stream_).resident_bytes / kLargeBlock - passed;
    }

    std::unique_ptr<FarPool> pool_;
    std::byte* stream_ = nullptr;
    std::byte* other_ = nullptr;
};
API_TEST_WITH_ENGINES(ReadAheadDistanceTest);

TEST_P(ReadAheadDistanceTest, IsLongWhereNothingElseUsesTheDevice) {
    for (uint64_t i = 0; i < kStreamBlocks / 2; ++i) touch(stream_, kLargeBlock, i);
    EXPECT_TRUE(eventually([&] { return blocks_ahead(kStreamBlocks / 2) > kFarBlocks; }));
}

TEST_P(ReadAheadDistanceTest, IsShortBesideRandomFaults) {
    for (uint64_t i = 0; i < kStreamBlocks / 2; ++i) {
        if (i % 32 == 0) touch(other_, kLargeBlock, i * 37 / 32 % kOtherBlocks);
        touch(stream_, kLargeBlock, i);
        ASSERT_LE(blocks_ahead(i + 1), kFarBlocks) << "block " << i;
    }
}

TEST_P(ReadAheadDistanceTest, IsShortBesideWriteBacks) {
    for (uint64_t i = 0; i < kStreamBlocks / 2; ++i) {
        if (i % 32 == 0) {
            poke(other_, kLargeBlock, 0, i);
            must(hanare_flush(pool_->get(), other_, kLargeBlock));
        }
        touch(stream_, kLargeBlock, i);
        ASSERT_LE(blocks_ahead(i + 1), kFarBlocks) << "block " << i;
    }
}

}  // namespace

}  // namespace hanare::api_test
