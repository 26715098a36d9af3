// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/ahead_share.hpp"

#include <gtest/gtest.h>

namespace hanare::pager {
namespace {

constexpr uint64_t kBudget = 1 << 20;
constexpr uint64_t kPeriod = kBudget / AheadShare::kMost;

class AheadShareTest : public testing::Test {
protected:
    uint64_t bytes() const { return share_.bytes_of(kBudget); }

    // Periods in which one part in so many of what was read ahead was given up unused, or none (0).
    void pass(uint32_t periods, uint32_t in_vain_of) {
        for (uint32_t i = 0; i < periods; ++i) {
            const uint64_t unused = in_vain_of > 0 ? kPeriod / in_vain_of : 0;
            share_.note_used(kPeriod - unused);
            share_.note_unused(unused);
            given_bytes_ += kPeriod;
            share_.adapt(given_bytes_, kBudget, least_bytes_);
        }
    }
    // How many periods go well until the share changes.
    uint32_t periods_until_change() {
        const uint64_t before = bytes();
        for (uint32_t periods = 1; periods < 1000; ++periods) {
            pass(1, 0);
            if (bytes() != before) return periods;
        }
        return 0;
    }

    AheadShare share_;
    uint64_t given_bytes_ = 0;
    uint64_t least_bytes_ = 1;
};

TEST_F(AheadShareTest, IsAQuarterWhileLittleIsReadInVain) {
    EXPECT_EQ(bytes(), kBudget / 4);
    pass(100, 16);
    EXPECT_EQ(bytes(), kBudget / 4);
}

TEST_F(AheadShareTest, IsHalvedDownToNothing) {
    pass(1, 2);
    EXPECT_EQ(bytes(), kBudget / 8);
    pass(2, 2);
    EXPECT_EQ(bytes(), kBudget / 16);
    pass(100, 2);
    EXPECT_EQ(bytes(), 0u);
}

TEST_F(AheadShareTest, DoesNotCountWhatWasReadBeforeItChanged) {
    pass(2, 1);
    EXPECT_EQ(bytes(), kBudget / 8);
}

TEST_F(AheadShareTest, GrowsAgain) {
    pass(100, 1);
    pass(1000, 0);
    EXPECT_EQ(bytes(), kBudget / 4);
}

TEST_F(AheadShareTest, IsNothingOrABlock) {
    least_bytes_ = kBudget / 32;
    pass(100, 1);
    EXPECT_EQ(bytes(), 0u);
    EXPECT_GT(periods_until_change(), 0u);
    EXPECT_EQ(bytes(), least_bytes_);
    pass(2, 1);
    EXPECT_EQ(bytes(), 0u);
}

TEST_F(AheadShareTest, WaitsLittleAgainOnceThereWasNothingInVainForLong) {
    pass(100, 1);
    for (int i = 0; i < 4; ++i) {
        periods_until_change();
        pass(2, 1);
    }
    pass(2000, 0);
    EXPECT_EQ(bytes(), kBudget / 4);
    pass(1, 1);
    EXPECT_EQ(bytes(), kBudget / 8);
    EXPECT_LE(periods_until_change(), 5u);
}

// Nothing at all is read ahead, so nothing in vain either.
TEST_F(AheadShareTest, WaitsTheLongerTheMoreOftenItGrewInVain) {
    pass(100, 1);
    uint32_t last = 0;
    for (int i = 0; i < 4; ++i) {
        const uint32_t periods = periods_until_change();
        EXPECT_GT(periods, last);
        last = periods;
        EXPECT_GT(bytes(), 0u);
        pass(2, 1);
        EXPECT_EQ(bytes(), 0u);
    }
}

TEST_F(AheadShareTest, AFewBlocksInVainDoNotMatter) {
    share_.note_unused(kPeriod / 16);
    share_.adapt(kPeriod, kBudget, least_bytes_);
    EXPECT_EQ(bytes(), kBudget / 4);
}

}  // namespace
}  // namespace hanare::pager
