// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/repeated_use.hpp"

#include <gtest/gtest.h>

namespace hanare::pager {
namespace {

TEST(RepeatedUseTest, CountsPassesWithTheSameParts) {
    RepeatedUse use;
    for (uint32_t pass = 1; pass <= 20; ++pass) {
        for (const uint32_t block : {20u, 54u}) {
            EXPECT_EQ(use.note(block, 0xf00f + block), std::min(pass, RepeatedUse::kPassesMax));
        }
    }
}

TEST(RepeatedUseTest, BeginsAnewWithOtherParts) {
    RepeatedUse use;
    EXPECT_EQ(use.note(20, 0x00ff), 1u);
    EXPECT_EQ(use.note(20, 0x00ff), 2u);
    EXPECT_EQ(use.note(20, 0x007f), 3u);  // nearly the same
    EXPECT_EQ(use.note(20, 0x0ff0), 1u);
    EXPECT_EQ(use.note(20, 0x0ff0), 2u);
    EXPECT_EQ(use.note(20, ~uint64_t{0}), 1u);
}

TEST(RepeatedUseTest, OthersInItsPlaceAreNotIt) {
    RepeatedUse use;
    EXPECT_EQ(use.note(20, 1), 1u);
    for (uint32_t block = 21; block < 100; ++block) EXPECT_EQ(use.note(block, 1), 1u);
    EXPECT_EQ(use.note(20, 1), 1u);
}

}  // namespace
}  // namespace hanare::pager
