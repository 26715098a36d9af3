// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/first_writes.hpp"

#include <gtest/gtest.h>

namespace hanare::pager {
namespace {

int expected_of(FirstWrites& writes, int reads) {
    int count = 0;
    for (int i = 0; i < reads; ++i) count += writes.are_expected() ? 1 : 0;
    return count;
}

TEST(FirstWritesTest, NoneAreExpectedBeforeManyAreKnown) {
    FirstWrites writes;
    EXPECT_EQ(expected_of(writes, 1000), 0);
    writes.note(63, 63);
    EXPECT_EQ(expected_of(writes, 1000), 0);
}

TEST(FirstWritesTest, WhereMostAreWrittenFewTellWhetherTheyStillAre) {
    FirstWrites writes;
    writes.note(75, 100);
    EXPECT_EQ(expected_of(writes, 1600), 1500);
}

TEST(FirstWritesTest, WhereManyAreNotTheyAllFault) {
    FirstWrites writes;
    writes.note(74, 100);
    EXPECT_EQ(expected_of(writes, 1600), 0);
}

TEST(FirstWritesTest, ForgetsWhatWas) {
    FirstWrites writes;
    for (int i = 0; i < 100; ++i) writes.note(30, 30);
    for (int i = 0; i < 30; ++i) writes.note(0, 30);
    EXPECT_EQ(expected_of(writes, 1600), 0);
}

}  // namespace
}  // namespace hanare::pager
