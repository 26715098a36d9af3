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
    EXPECT_EQ(use.passes(), RepeatedUse::kPassesMax);
    use.begin_anew();
    EXPECT_EQ(use.passes(), 1u);
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

TEST(RepeatedUseTest, SamplesWithoutAPlaceFollowTheOthers) {
    RepeatedUse use;
    for (uint32_t pass = 1; pass <= 4; ++pass) {
        EXPECT_EQ(use.note(20, 1), pass);
        for (uint32_t other = 1; other < 40; ++other) {
            EXPECT_EQ(use.note(20 + 31 * other, 1 << other % 8), pass);
        }
    }
}

TEST(RepeatedUseTest, PlacesOfWhoIsNotMetAreTaken) {
    RepeatedUse use;
    EXPECT_EQ(use.note(20, 1), 1u);
    for (int i = 0; i < 100; ++i) use.note(51, 2);
    EXPECT_EQ(use.passes(), RepeatedUse::kPassesMax);
    EXPECT_EQ(use.note(51, 4), 1u);
}

}  // namespace
}  // namespace hanare::pager
