// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/dense_use.hpp"

#include <gtest/gtest.h>

namespace hanare::pager {
namespace {

// Uses of so many that are trusted.
int trusted(DenseUse& dense, int uses) {
    int count = 0;
    for (int i = 0; i < uses; ++i) count += dense.is_trusted() ? 1 : 0;
    return count;
}

void note(DenseUse& dense, int tests, bool is_dense) {
    for (int i = 0; i < tests; ++i) dense.note(is_dense);
}

TEST(DenseUseTest, TrustsNothingUntested) {
    DenseUse dense;
    EXPECT_EQ(trusted(dense, 1000), 0);
    note(dense, 7, true);
    EXPECT_EQ(trusted(dense, 1000), 0);
}

TEST(DenseUseTest, TestsOneInEightWhereTheyAreDense) {
    DenseUse dense;
    note(dense, 100, true);
    EXPECT_NEAR(trusted(dense, 8000), 7000, 150);
}

// Also those that meet every eighth use.
TEST(DenseUseTest, TestsEachInTurn) {
    DenseUse dense;
    note(dense, 100, true);
    int trusted_eighths = 0;
    for (int i = 0; i < 8000; ++i) {
        if (dense.is_trusted() && i % 8 == 0) ++trusted_eighths;
    }
    EXPECT_NEAR(trusted_eighths, 875, 50);
}

TEST(DenseUseTest, TestsAllWhereMostAreDenseNoMore) {
    DenseUse dense;
    note(dense, 1000, true);
    note(dense, 40, false);
    EXPECT_EQ(trusted(dense, 1000), 0);
    note(dense, 60, true);
    EXPECT_GT(trusted(dense, 1000), 800);
}

}  // namespace
}  // namespace hanare::pager
