// SPDX-License-Identifier: Apache-2.0
//
// Round robin without read-ahead is the DLM paper's scheme and nothing else: a simulation of that
// foretells every count.
#include <algorithm>
#include <deque>

#include "api/far_pool.hpp"
#include "base/prng.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 32 * kKiB;
constexpr uint64_t kBlocks = 96;
constexpr uint64_t kBytes = kBlocks * kBlock;
constexpr uint64_t kFrames = 24;

// What is in use survives a scan of several times the budget.
TEST(SecondChanceTest, AScanLeavesMostOfWhatWasResident) {
    constexpr uint64_t kBudget = 160;
    constexpr uint64_t kHot = kBudget / 4;
    constexpr uint64_t kScanned = 3 * kBudget;
    constexpr uint64_t kScanBytes = kScanned * kBlock;
    constexpr uint64_t kWords = kBlock / sizeof(uint64_t);
    constexpr uint64_t kScans = 3;
    const auto fetched = [](const char* replacement) {
        const sys::testing::TemporaryDirectory directory;
        PoolConfig config;
        config.engine = "auto";
        config.store = "file:" + directory.path();
        config.options.block_bytes = kBlock;
        config.options.local_bytes = budget_for(kBudget, kBlock, kScanBytes + kHot * kBlock);
        config.options.replacement = replacement;
        FarPool pool(config);
        uint64_t* const hot = pool.alloc_words(kHot * kBlock);
        uint64_t* const scanned = pool.alloc_words(kScanBytes);
        fill(scanned, kScanBytes, 1);
        fill(hot, kHot * kBlock, 2);
        must(hanare_flush(pool.get(), nullptr, 0));
        const auto use_hot = [&] { EXPECT_EQ(mismatches(hot, kHot * kBlock, 2), 0u); };
        for (int pass = 0; pass < 4; ++pass) use_hot();
        const uint64_t before = pool.stats(hot).read_bytes;
        for (uint64_t scan = 0; scan < kScans; ++scan) {
            for (uint64_t block = 0; block < kScanned; ++block) {
                EXPECT_EQ(scanned[block * kWords], pattern(1, block * kWords));
            }
            use_hot();
        }
        return (pool.stats(hot).read_bytes - before) / kBlock;
    };
    EXPECT_EQ(fetched("round_robin"), kScans * kHot);
    EXPECT_LT(fetched("second_chance"), kScans * kHot / 4);
}

// Blocks in the order in which they came.
class Ring {
public:
    explicit Ring(uint64_t room) : room_(room) {}
    bool holds(uint64_t block) const {
        return std::find(blocks_.begin(), blocks_.end(), block) != blocks_.end();
    }
    void access(uint64_t block) {
        if (holds(block)) return;
        ++arrivals;
        if (blocks_.size() == room_) {
            blocks_.pop_front();
            ++swaps;
        }
        blocks_.push_back(block);
    }
    uint64_t arrivals = 0;
    uint64_t swaps = 0;

private:
    uint64_t room_;
    std::deque<uint64_t> blocks_;
};

class RoundRobinTest : public EngineTest {
protected:
    void open(uint32_t read_ahead_blocks) {
        const sys::testing::TemporaryDirectory directory;
        PoolConfig config;
        config.engine = GetParam();
        config.store = "file:" + directory.path();
        config.options.block_bytes = kBlock;
        config.options.local_bytes = budget_for(kFrames, kBlock, kBytes);
        config.options.read_ahead_blocks = read_ahead_blocks;
        config.options.replacement = "round_robin";
        pool_ = std::make_unique<FarPool>(config);
        words_ = pool_->alloc_words(kBytes);
        fill(words_, kBytes, 1);
    }
    uint64_t& word(uint64_t block) { return words_[block * (kBlock / sizeof(uint64_t))]; }

    std::unique_ptr<FarPool> pool_;
    uint64_t* words_ = nullptr;
};
API_TEST_WITH_ENGINES(RoundRobinTest);

TEST_P(RoundRobinTest, EverySwapIsForetold) {
    open(HANARE_READ_AHEAD_OFF);
    const hanare_counters before = pool_->stats();
    const uint64_t room = before.resident_bytes / kBlock;
    ASSERT_GE(room, kFrames);
    ASSERT_LT(room, kBlocks / 2);
    EXPECT_EQ(before.zero_fills, kBlocks);
    EXPECT_EQ(before.write_backs, kBlocks - room);
    EXPECT_EQ(before.evictions_inline, kBlocks - room);

    Ring ring(room);
    for (uint64_t block = 0; block < kBlocks; ++block) ring.access(block);
    const uint64_t arrivals_before = ring.arrivals;
    const uint64_t swaps_before = ring.swaps;
    Prng random(7);
    uint64_t wrong = 0;
    for (uint64_t step = 0; step < 4000; ++step) {
        // Some blocks much more often than others, as other schemes would notice.
        const uint64_t block = random.below(2) == 0 ? random.below(8) : random.below(kBlocks);
        ring.access(block);
        if (random.below(2) == 0)
            poke(reinterpret_cast<std::byte*>(words_), kBlock, block,
                 pattern(1, block * (kBlock / sizeof(uint64_t))));
        wrong += word(block) != pattern(1, block * (kBlock / sizeof(uint64_t)));
    }
    const hanare_counters after = pool_->stats();
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(after.demand_reads - before.demand_reads, ring.arrivals - arrivals_before);
    EXPECT_EQ(after.evictions_inline - before.evictions_inline, ring.swaps - swaps_before);
    EXPECT_EQ(after.write_backs + after.clean_drops - before.write_backs - before.clean_drops,
              ring.swaps - swaps_before);
    EXPECT_EQ(after.part_reads + after.prefetch_reads + after.staged_hits, 0u);
    EXPECT_EQ(after.resident_bytes, before.resident_bytes);
}

TEST_P(RoundRobinTest, ReadAheadGetsItsFrames) {
    open(8);
    const hanare_counters before = pool_->stats();
    EXPECT_EQ(mismatches(words_, kBytes, 1), 0u);
    EXPECT_GT(pool_->stats().prefetch_reads, before.prefetch_reads);
}

}  // namespace

}  // namespace hanare::api_test
