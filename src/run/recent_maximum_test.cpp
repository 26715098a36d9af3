// SPDX-License-Identifier: Apache-2.0
#include "run/recent_maximum.hpp"

#include <gtest/gtest.h>

namespace hanare::run {
namespace {

TEST(RecentMaximumTest, GrowsAtOnce) {
    RecentMaximum maximum;
    EXPECT_EQ(maximum.update(3), 3u);
    EXPECT_EQ(maximum.update(9), 9u);
    EXPECT_EQ(maximum.update(4), 9u);
}

TEST(RecentMaximumTest, ForgetsAfterOneToTwoPeriods) {
    for (uint32_t before = 0; before < RecentMaximum::kPeriod; ++before) {
        RecentMaximum maximum;
        for (uint32_t i = 0; i < before; ++i) maximum.update(1);
        maximum.update(9);
        uint32_t kept = 0;
        while (maximum.update(2) == 9) ++kept;
        EXPECT_GE(kept, RecentMaximum::kPeriod) << before;
        EXPECT_LT(kept, 2 * RecentMaximum::kPeriod) << before;
        EXPECT_EQ(maximum.update(2), 2u);
    }
}

}  // namespace
}  // namespace hanare::run
