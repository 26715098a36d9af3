// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/stream_density.hpp"

#include <gtest/gtest.h>

namespace hanare::pager {
namespace {

constexpr uint32_t kMany = 1 << 20;  // blocks

uint32_t sample_count(const StreamDensity& density, uint32_t first, uint32_t blocks,
                      uint32_t block_count = kMany) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < blocks; ++i) count += density.samples(first + i, block_count);
    return count;
}

TEST(StreamDensityTest, SamplesAreSpreadEvenly) {
    const StreamDensity density;
    for (uint32_t first = 0; first < 1'000'000; first += 997) {
        EXPECT_GE(sample_count(density, first, 64), 1u) << first;
        EXPECT_LE(sample_count(density, first, 64), 4u) << first;
    }
    EXPECT_NEAR(sample_count(density, 0, 1 << 16), (1 << 16) / 32, 16);
}

TEST(StreamDensityTest, SamplesGetRareWhereBlocksAreUsedUp) {
    StreamDensity density;
    for (int i = 0; i < 100; ++i) density.note(true);
    EXPECT_FALSE(density.is_low());
    EXPECT_NEAR(sample_count(density, 0, 1 << 16), (1 << 16) / 512, 4);
    density.note(false);
    EXPECT_NEAR(sample_count(density, 0, 1 << 16), (1 << 16) / 32, 16);
}

TEST(StreamDensityTest, EveryPassMeetsSamplesWhateverTheLevel) {
    for (uint32_t block_count = 64; block_count < 10'000; ++block_count) {
        StreamDensity density;
        for (int notes = 0; notes < 6; ++notes, density.note(true)) {
            ASSERT_GE(sample_count(density, 1, block_count - 1, block_count), 2u)
                << block_count << " blocks after " << notes << " notes";
        }
    }
}

TEST(StreamDensityTest, TwoInARowAreLowAndOneEndsIt) {
    StreamDensity density;
    density.note(false);
    EXPECT_FALSE(density.is_low());
    density.note(true);
    density.note(false);
    EXPECT_FALSE(density.is_low());
    for (int i = 0; i < 10; ++i) {
        density.note(false);
        EXPECT_TRUE(density.is_low());
    }
    density.note(true);
    EXPECT_FALSE(density.is_low());
    density.note(false);
    EXPECT_FALSE(density.is_low());
    density.note(false);
    EXPECT_TRUE(density.is_low());
}

}  // namespace
}  // namespace hanare::pager
