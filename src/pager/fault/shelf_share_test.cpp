// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/shelf_share.hpp"

#include <gtest/gtest.h>

namespace hanare::pager {
namespace {

constexpr uint64_t kBudget = 1 << 20;

// Returns for each need.
void pass(ShelfShare& share, uint32_t returns, uint32_t times = 100'000) {
    for (uint32_t i = 0; i < times; ++i) {
        for (uint32_t j = 0; j < returns; ++j) share.note_return();
        share.note_need();
    }
}

TEST(ShelfShareTest, IsHalfAtFirstAndWhereLittleComesBack) {
    ShelfShare share;
    EXPECT_EQ(share.bytes_of(kBudget), kBudget / 2);
    pass(share, 1);
    EXPECT_EQ(share.bytes_of(kBudget), kBudget / 2);
}

TEST(ShelfShareTest, StaysWhereTheCostsAreEven) {
    ShelfShare share;
    pass(share, 3);
    EXPECT_EQ(share.bytes_of(kBudget), kBudget / 2);
}

TEST(ShelfShareTest, ShrinksWhereMuchComesBackAndGrowsAgain) {
    ShelfShare share;
    pass(share, 10, 300);
    const uint64_t less = share.bytes_of(kBudget);
    EXPECT_LT(less, kBudget / 2);
    pass(share, 10);
    EXPECT_LT(share.bytes_of(kBudget), less);
    EXPECT_GE(share.bytes_of(kBudget), kBudget / 16);
    pass(share, 0);
    EXPECT_EQ(share.bytes_of(kBudget), kBudget / 2);
}

TEST(ShelfShareTest, ShrinksWhereNothingIsRead) {
    ShelfShare share;
    for (int i = 0; i < 100'000; ++i) share.note_return();
    EXPECT_LT(share.bytes_of(kBudget), kBudget / 8);
}

}  // namespace
}  // namespace hanare::pager
