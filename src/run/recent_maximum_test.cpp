// SPDX-License-Identifier: Apache-2.0
#include "run/recent_maximum.hpp"

#include <gtest/gtest.h>

namespace hanare::run {
namespace {

constexpr uint64_t kPeriodNs = RecentMaximum::kPeriodNs;
constexpr uint64_t kStepNs = kPeriodNs / 10;
constexpr uint64_t kStartNs = 77 * kPeriodNs;

TEST(RecentMaximumTest, GrowsAtOnce) {
    RecentMaximum maximum;
    EXPECT_EQ(maximum.update(3, kStartNs), 3u);
    EXPECT_EQ(maximum.update(9, kStartNs + 1), 9u);
    EXPECT_EQ(maximum.update(4, kStartNs + 2), 9u);
}

TEST(RecentMaximumTest, ForgetsAfterOneToTwoPeriods) {
    for (uint64_t before = 0; before < 10; ++before) {
        RecentMaximum maximum;
        uint64_t now_ns = kStartNs;
        for (uint64_t i = 0; i < before; ++i) maximum.update(1, now_ns += kStepNs);
        const uint64_t noted_ns = now_ns += kStepNs;
        maximum.update(9, noted_ns);
        while (maximum.update(2, now_ns += kStepNs) == 9) {
        }
        EXPECT_GE(now_ns, noted_ns + kPeriodNs) << before;
        EXPECT_LE(now_ns, noted_ns + 2 * kPeriodNs) << before;
    }
}

// Who tells rarely is judged by what it tells.
TEST(RecentMaximumTest, ForgetsWhatIsLongAgo) {
    RecentMaximum maximum;
    maximum.update(9, kStartNs);
    EXPECT_EQ(maximum.update(2, kStartNs + 2 * kPeriodNs), 2u);
}

}  // namespace
}  // namespace hanare::run
