// SPDX-License-Identifier: Apache-2.0
#include "space/used_ranges.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bitset>
#include <random>

namespace hanare::space {
namespace {

constexpr Range kWhole = {100, 200};

struct Ranges {
    std::array<Range, 64> room;
    UsedRanges used;
    Ranges() { used.begin(room, kWhole); }
};

TEST(UsedRangesTest, WhatTouchesBecomesOne) {
    Ranges ranges;
    EXPECT_TRUE(ranges.used.add({110, 120}));
    EXPECT_TRUE(ranges.used.add({130, 140}));
    EXPECT_EQ(ranges.used.count(), 2U);
    EXPECT_TRUE(ranges.used.add({120, 130}));
    EXPECT_EQ(ranges.used.count(), 1U);
    EXPECT_FALSE(ranges.used.is_free({139, 141}));
    EXPECT_TRUE(ranges.used.is_free({140, 141}));
}

TEST(UsedRangesTest, FindsTheFirstPlaceThatIsAligned) {
    Ranges ranges;
    EXPECT_EQ(ranges.used.find_free(8, 1, 0), 100U);
    ranges.used.add({100, 105});
    ranges.used.add({112, 130});
    EXPECT_EQ(ranges.used.find_free(4, 1, 0), 105U);
    EXPECT_EQ(ranges.used.find_free(4, 8, 0), 136U);
    EXPECT_EQ(ranges.used.find_free(4, 1, 110), 130U);
    EXPECT_EQ(ranges.used.find_free(70, 1, 0), 130U);
    EXPECT_EQ(ranges.used.find_free(71, 1, 0), 0U);
}

TEST(UsedRangesTest, IgnoresWhatLiesOutside) {
    Ranges ranges;
    EXPECT_TRUE(ranges.used.add({10, 50}));
    EXPECT_EQ(ranges.used.count(), 0U);
    EXPECT_TRUE(ranges.used.add({190, 300}));
    EXPECT_TRUE(ranges.used.remove({195, 1000}));
    EXPECT_TRUE(ranges.used.is_free({195, 200}));
    EXPECT_FALSE(ranges.used.is_free({195, 201}));
}

TEST(UsedRangesTest, SaysWhenThereIsNoRoom) {
    std::array<Range, 2> room;
    UsedRanges used;
    used.begin(room, kWhole);
    EXPECT_TRUE(used.add({100, 110}));
    EXPECT_TRUE(used.add({120, 130}));
    EXPECT_FALSE(used.add({140, 150}));
    EXPECT_FALSE(used.remove({122, 125}));
    EXPECT_FALSE(used.is_free({122, 125}));
    EXPECT_TRUE(used.add({110, 120}));
    EXPECT_TRUE(used.add({140, 150}));
}

TEST(UsedRangesTest, AgreesWithABitForEachUnit) {
    std::mt19937 random(3);
    Ranges ranges;
    std::bitset<200> bits;
    for (int step = 0; step < 20'000; ++step) {
        const uint64_t begin = 100 + random() % 100;
        const Range range = {begin, begin + random() % (201 - begin)};
        const bool adds = random() % 2 == 0;
        ASSERT_TRUE(adds ? ranges.used.add(range) : ranges.used.remove(range));
        for (uint64_t at = range.begin; at < range.end; ++at) bits.set(at, adds);
        size_t count = 0;
        for (size_t at = 100; at < 200; ++at) {
            ASSERT_EQ(ranges.used.is_free({at, at + 1}), !bits.test(at)) << "step " << step;
            count += bits.test(at) && (at == 100 || !bits.test(at - 1)) ? 1 : 0;
        }
        ASSERT_EQ(ranges.used.count(), count);
        const uint64_t bytes = 1 + random() % 20;
        const uint64_t found = ranges.used.find_free(bytes, 4, 0);
        uint64_t expected = 0;
        for (uint64_t at = 100; at + bytes <= 200 && expected == 0; at += 4) {
            bool is_free = true;
            for (uint64_t unit = at; unit < at + bytes; ++unit) is_free &= !bits.test(unit);
            if (is_free) expected = at;
        }
        ASSERT_EQ(found, expected);
    }
}

}  // namespace
}  // namespace hanare::space
