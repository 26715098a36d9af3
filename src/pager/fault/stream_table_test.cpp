// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/stream_table.hpp"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <vector>

#include "base/prng.hpp"
#include "pager/fault/block.hpp"

namespace hanare::pager {
namespace {

using Begin = StreamTable::Begin;

class StreamTableTest : public testing::Test {
protected:
    static constexpr uint32_t kBlocks = 4096;
    static constexpr uint32_t kDepth = 16;

    StreamTable::Advice fault(uint32_t block, bool may_be_sparse = false,
                              Begin begin = Begin::kCandidate, uint32_t part = 0) {
        return table_.observe(block, part, write_,
                              {.blocks = blocks_.data(),
                               .block_count = kBlocks,
                               .may_be_sparse = may_be_sparse,
                               .depth_blocks = kDepth,
                               .quick_blocks = quick_,
                               .by_parts = by_parts_,
                               .beside = beside_},
                              begin);
    }
    void make_present(uint32_t block, BlockState state = BlockState::kStaged) {
        ASSERT_TRUE(blocks_[block].try_enter(blocks_[block].load(), state));
    }
    // All blocks that the advice names.
    static std::vector<uint32_t> named(const StreamTable::Advice& advice) {
        std::vector<uint32_t> blocks;
        for (uint32_t i = 0; i < advice.count; ++i) {
            blocks.push_back(advice.first + i * static_cast<uint32_t>(advice.step));
        }
        return blocks;
    }

    std::vector<Block> blocks_{kBlocks};
    StreamTable table_;
    uint32_t quick_ = kDepth;
    bool by_parts_ = false;
    uint32_t beside_ = 0;
    bool write_ = false;
};

using Blocks = std::vector<uint32_t>;

TEST_F(StreamTableTest, NeighboursAreAStream) {
    EXPECT_EQ(fault(7).count, 0u);
    EXPECT_EQ(named(fault(8)), (Blocks{9, 10, 11, 12}));
    EXPECT_EQ(fault(100).count, 0u);
    EXPECT_EQ(named(fault(99)), (Blocks{98, 97, 96, 95}));
}

TEST_F(StreamTableTest, ABlockThatFaultsAgainBelongsToItsStream) {
    for (const uint32_t length : {1u, 2u, 10u}) {
        SCOPED_TRACE(length);
        uint32_t block = 100 * length;
        fault(block - 1);
        for (uint32_t i = 0; i < length; ++i) EXPECT_EQ(fault(block++, true).parts, 1u);
        --block;
        EXPECT_EQ(fault(block, true, Begin::kCandidate, 5).parts, 0x21u);
        EXPECT_EQ(fault(block, true, Begin::kCandidate, 5).parts, 0x21u);
        write_ = true;
        EXPECT_EQ(fault(block, true, Begin::kCandidate, 63).parts, uint64_t{1} << 63 | 0x21);
        write_ = false;
        const StreamTable::Advice next = fault(block + 1, true);
        EXPECT_TRUE(next.continues && next.left_written);
        EXPECT_EQ(next.parts, 1u);
        EXPECT_EQ(next.left_parts, uint64_t{1} << 63 | 0x21);
        EXPECT_FALSE(fault(block + 2, true).left_written);
    }
}

TEST_F(StreamTableTest, WhoComesBackLaterNeedsPartsAnew) {
    for (const uint32_t block : {7u, 8u, 9u}) fault(block, true);
    EXPECT_EQ(fault(9, true, Begin::kCandidate, 1).parts, 3u);
    for (uint32_t i = 0; i < 32; ++i) fault(1000 + 20 * i * i, true, Begin::kIgnore);
    EXPECT_EQ(fault(9, true, Begin::kCandidate, 2).parts, 4u);
}

TEST_F(StreamTableTest, WhatWasWithdrawnAsAWholeBelongsToItsStream) {
    for (uint32_t block = 7; block < 14; ++block) fault(block, true);
    for (uint32_t i = 0; i < 40; ++i) fault(1000 + 20 * i * i, true, Begin::kIgnore);
    EXPECT_FALSE(fault(13, true, Begin::kIgnore, 41).continues);
    make_present(13);
    EXPECT_TRUE(fault(13, true, Begin::kIgnore, 41).continues);
    EXPECT_TRUE(fault(14, true, Begin::kIgnore).continues);
}

TEST_F(StreamTableTest, AStreamComesOverPartsThatAreThere) {
    for (const bool is_there : {true, false}) {
        const uint32_t first = is_there ? 7 : 107;
        for (uint32_t block = first; block < first + 7; ++block) fault(block, true);
        for (uint32_t i = 0; i < 40; ++i) fault(2000 + 20 * i, true, Begin::kIgnore, 30);
        beside_ = is_there ? 5 : 0;
        EXPECT_EQ(fault(first + 6, true, Begin::kIgnore, 5).continues, is_there);
        EXPECT_EQ(fault(first + 7, true, Begin::kIgnore, 5).continues, is_there);
        beside_ = 0;
    }
}

TEST_F(StreamTableTest, ManyFaultsOnOneBlockPushOutNoStream) {
    for (const uint32_t block : {7u, 8u, 9u}) fault(block, true);
    for (uint32_t part = 10; part < 60; part += 2) {
        fault(1000, true, Begin::kCandidate, part);
        fault(2000, true, Begin::kCandidate, part);
    }
    EXPECT_TRUE(fault(10, true).continues);
}

TEST_F(StreamTableTest, TheDistanceGrowsFromBlockToBlockOnly) {
    EXPECT_EQ(fault(7).count, 0u);
    EXPECT_EQ(fault(8).count, 4u);
    for (uint32_t part = 1; part < 8; ++part) {
        EXPECT_EQ(fault(8, true, Begin::kCandidate, part).count, 0u);
    }
    EXPECT_EQ(named(fault(9)), (Blocks{13, 14, 15, 16, 17}));
}

// What all have asked for and not come to yet.
TEST_F(StreamTableTest, StreamsThatTakeTurnsShareWhatMayBeReadAhead) {
    constexpr uint32_t kShared = 24;
    for (const uint32_t streams : {1u, 3u, 12u, 30u}) {
        SCOPED_TRACE(streams);
        StreamTable table;
        uint32_t most = 0;
        for (uint32_t turn = 0; turn < 40; ++turn) {
            uint32_t ahead = 0;
            for (uint32_t stream = 0; stream < streams; ++stream) {
                const uint32_t block = stream * 120 + stream * stream % 37 + turn;
                const auto advice = table.observe(block, 0, false,
                                                  {.blocks = blocks_.data(),
                                                   .block_count = kBlocks,
                                                   .may_be_sparse = false,
                                                   .depth_blocks = 64,
                                                   .quick_blocks = kDepth,
                                                   .by_parts = false,
                                                   .shared_blocks = kShared},
                                                  Begin::kCandidate);
                if (advice.count > 0) ahead += advice.first + advice.count - 1 - block;
            }
            if (turn > 2) most = std::max(most, ahead);  // all are known
        }
        EXPECT_LE(most, kShared);
        if (streams <= kShared) {
            EXPECT_GE(most, kShared / streams * streams / 2);
        }
    }
}

// At first by doubling, then by what the stream has needed; it has not needed block 11.
TEST_F(StreamTableTest, WhatAShortStreamReadsInVainIsBounded) {
    quick_ = 6;
    fault(7);
    EXPECT_EQ(named(fault(8)), (Blocks{9, 10, 11, 12}));
    EXPECT_EQ(named(fault(9)), (Blocks{13, 14, 15}));
    EXPECT_EQ(named(fault(10)), (Blocks{16, 17}));
    for (uint32_t block = 9; block < 12; ++block) make_present(block);
    EXPECT_EQ(named(fault(12)), (Blocks{18, 19, 20}));
    uint32_t last = 20;
    for (uint32_t block = 13; block < 60; ++block) {
        for (const uint32_t next : named(fault(block))) {
            EXPECT_EQ(next, ++last);
            EXPECT_LE(next - block, kDepth);
        }
    }
    // It goes on by an eighth at a time.
    EXPECT_GT(last, 59 + kDepth - kDepth / 8);
    EXPECT_LE(last, 59 + kDepth);
}

TEST_F(StreamTableTest, AStreamServedByPartsJumpsOverSparseBlocks) {
    for (by_parts_ = false;; by_parts_ = true) {
        const uint32_t first = by_parts_ ? 1000 : 2000;
        for (uint32_t i = 0; i < 4; ++i) fault(first + i, true);
        make_present(first + 4, BlockState::kSparse);
        EXPECT_EQ(fault(first + 5, true).continues, by_parts_);
        if (by_parts_) return;
    }
}

TEST_F(StreamTableTest, EqualDistancesAreAStream) {
    for (const int32_t step : {2, 5, 300, -3, -64}) {
        SCOPED_TRACE(step);
        const auto at = [&](uint32_t i) { return 2000 + i * static_cast<uint32_t>(step); };
        StreamTable table;
        const StreamTable::Surroundings around = {blocks_.data(), kBlocks, false,
                                                  kDepth,         kDepth,  false};
        EXPECT_FALSE(table.observe(at(0), 0, false, around, Begin::kCandidate).continues);
        EXPECT_FALSE(table.observe(at(1), 0, false, around, Begin::kCandidate).continues);
        const StreamTable::Advice third = table.observe(at(2), 0, false, around, Begin::kCandidate);
        EXPECT_TRUE(third.continues);
        EXPECT_EQ(named(third), (Blocks{at(3), at(4), at(5), at(6)}));
    }
}

TEST_F(StreamTableTest, StridedStreamsBesideEachOther) {
    std::array<uint32_t, 3> at = {100, 2000, 4000};
    const std::array<int32_t, 3> steps = {7, 1, -11};
    for (int round = 0; round < 40; ++round) {
        for (size_t i = 0; i < at.size(); ++i) {
            const StreamTable::Advice advice = fault(at[i]);
            EXPECT_EQ(advice.continues, round >= (steps[i] == 1 ? 1 : 2)) << round << " " << i;
            EXPECT_TRUE(advice.count == 0 || advice.step == steps[i]);
            if (round > 12) {
                EXPECT_EQ(advice.behind, at[i] - 8 * static_cast<uint32_t>(steps[i]));
            }
            at[i] += static_cast<uint32_t>(steps[i]);
        }
    }
}

TEST_F(StreamTableTest, ArraysAtEqualDistancesAreStreamsOfNeighbours) {
    for (const uint32_t arrays : {3u, 4u, 5u}) {
        StreamTable table;
        const uint32_t length = kBlocks / arrays;
        uint32_t late = 0;
        for (uint32_t i = 0; i < 100; ++i) {
            for (uint32_t array = 0; array < arrays; ++array) {
                const StreamTable::Advice advice = table.observe(
                    array * length + i, 0, false,
                    {blocks_.data(), kBlocks, true, kDepth, kDepth, false}, Begin::kCandidate);
                if (i < 3) continue;
                late += advice.part || !advice.continues || (advice.count > 0 && advice.step != 1);
            }
        }
        EXPECT_EQ(late, 0u) << arrays;
    }
}

// Never beyond the region, and each block once.
TEST_F(StreamTableTest, StrideEndsWithTheRegion) {
    for (const int32_t step : {10, -10}) {
        Blocks asked;
        for (uint32_t i = 0, block = step > 0 ? 3805 : 295; i < 30; ++i) {
            for (const uint32_t ahead : named(fault(block))) asked.push_back(ahead);
            if (i < 29) block += static_cast<uint32_t>(step);
        }
        ASSERT_EQ(asked.size(), 27u);
        for (size_t i = 0; i < asked.size(); ++i) {
            const auto distance = static_cast<uint32_t>(step) * (3 + static_cast<uint32_t>(i));
            EXPECT_EQ(asked[i], (step > 0 ? 3805 : 295) + distance);
        }
    }
}

TEST_F(StreamTableTest, StrideJumpsOverWhatIsPresent) {
    for (const uint32_t block : {100u, 104u, 108u}) fault(block);
    make_present(112);
    make_present(116);
    EXPECT_TRUE(fault(120).continues);
    EXPECT_FALSE(fault(128).continues) << "124 is absent and was not asked for";
}

TEST_F(StreamTableTest, StrideNeedsPartsUntilASecondOneIsAskedFor) {
    for (const uint32_t block : {100u, 104u}) EXPECT_FALSE(fault(block, true).part);
    for (const uint32_t block : {108u, 112u, 116u, 120u}) {
        const StreamTable::Advice advice = fault(block, true);
        EXPECT_TRUE(advice.continues && advice.part);
        EXPECT_EQ(advice.count, 0u);
    }
    EXPECT_TRUE(fault(120, true).part) << "the same once more, as of a write after a read";
    EXPECT_EQ(named(fault(120, true, Begin::kCandidate, 1)), (Blocks{124, 128, 132, 136}));
    const StreamTable::Advice next = fault(124, true);
    EXPECT_TRUE(next.continues && !next.part);
    EXPECT_EQ(named(next), (Blocks{140, 144, 148, 152, 156}));
}

TEST_F(StreamTableTest, StrideIsReadAheadWhereThereAreNoPartsAnyMore) {
    for (const uint32_t block : {100u, 104u, 108u, 112u}) fault(block, true);
    EXPECT_EQ(named(fault(116, false)), (Blocks{120, 124, 128, 132}));
    for (const uint32_t block : {1000u, 1004u, 1008u}) fault(block, true);
    EXPECT_EQ(fault(1012, true, Begin::kAtOnce).count, 4u);
}

TEST_F(StreamTableTest, RandomFaultsBeginNoStride) {
    for (const uint32_t block : {100u, 104u, 108u}) {
        EXPECT_FALSE(fault(block, true, Begin::kIgnore).continues);
    }
    for (uint32_t block = 1000; block < 1050; block += 10) fault(block, true);
    EXPECT_TRUE(fault(1050, true, Begin::kIgnore).continues) << "a stream that is certain";
}

// A heap of 120 MiB.
TEST_F(StreamTableTest, RandomFaultsAmongFewBlocksContinueStreamsByChanceOnly) {
    constexpr uint32_t kFew = 480;
    constexpr uint32_t kParts = 64;
    constexpr int kFaults = 20'000;
    Prng prng(5);
    for (const bool by_chance : {false, true}) {
        StreamTable table;
        int continued = 0;
        uint32_t named = 0;
        for (int i = 0; i < kFaults; ++i) {
            const StreamTable::Surroundings around = {
                blocks_.data(), kFew, true, kDepth, kDepth, false, kParts, 1, by_chance};
            const auto block = static_cast<uint32_t>(prng.below(kFew));
            const auto part = static_cast<uint32_t>(prng.below(kParts));
            const StreamTable::Advice advice =
                table.observe(block, part, false, around, Begin::kCandidate);
            continued += advice.continues ? 1 : 0;
            named += advice.count;
        }
        EXPECT_LT(continued, by_chance ? kFaults / 200 : kFaults / 8) << by_chance;
        if (by_chance) {
            EXPECT_LT(named, static_cast<uint32_t>(kFaults) / 100);
        }
    }
}

}  // namespace
}  // namespace hanare::pager
