// SPDX-License-Identifier: Apache-2.0
#include "dsm/twins.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "sys/signal.hpp"

namespace hanare::dsm {
namespace {

constexpr uint32_t kBlocks = 3 * Twins::kKeptMax;

TEST(TwinsTest, MemoryIsUsedAgainAndGivenBack) {
    auto made = Twins::make(kBlocks);
    ASSERT_TRUE(made.has_value());
    Twins& twins = *made;
    const sys::SignalBlock no_signals;
    for (int round = 0; round < 3; ++round) {
        for (uint32_t block = 0; block < kBlocks; ++block) {
            std::memset(twins.take(block), static_cast<int>(block % 251), kBlockBytes);
        }
        for (uint32_t block = 0; block < kBlocks; ++block) {
            ASSERT_EQ(twins.of(block)[block % kBlockBytes], std::byte(block % 251));
        }
        EXPECT_EQ(twins.resident(), kBlocks);
        for (uint32_t block = 0; block < kBlocks; ++block) twins.give_back(block);
        twins.trim();
        EXPECT_EQ(twins.resident(), Twins::kKeptMax);
    }
}

TEST(TwinsTest, ABlockHasOne) {
    auto made = Twins::make(100);
    ASSERT_TRUE(made.has_value());
    const sys::SignalBlock no_signals;
    std::byte* const first = made->take(7);
    EXPECT_EQ(made->take(7), first);
    EXPECT_EQ(made->of(7), first);
    made->give_back(7);
    EXPECT_EQ(made->take(50), first);
    EXPECT_EQ(made->resident(), 1u);
}

}  // namespace
}  // namespace hanare::dsm
