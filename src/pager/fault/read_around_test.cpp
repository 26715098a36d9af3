// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/read_around.hpp"

#include <gtest/gtest.h>

namespace hanare::pager {
namespace {

// Reads of so many that bring neighbours.
int neighbourly(ReadAround& around, int reads) {
    int count = 0;
    for (int i = 0; i < reads; ++i) count += around.parts() > 1 ? 1 : 0;
    return count;
}

TEST(ReadAroundTest, TriesNowAndThenOnly) {
    ReadAround around;
    EXPECT_EQ(neighbourly(around, 3200), 100);
    around.note(0, 10'000);
    EXPECT_EQ(neighbourly(around, 3200), 100);
}

TEST(ReadAroundTest, GoesOnWhereNeighboursAreUsed) {
    ReadAround around;
    for (int i = 0; i < 10; ++i) around.note(5, 5);
    EXPECT_EQ(neighbourly(around, 1000), 1000);
}

TEST(ReadAroundTest, DoesNotTakeAFewForMany) {
    ReadAround around;
    around.note(10, 0);
    EXPECT_LT(neighbourly(around, 1000), 50);
}

TEST(ReadAroundTest, ForgetsWhatWas) {
    ReadAround around;
    for (int i = 0; i < 100; ++i) around.note(30, 0);
    for (int i = 0; i < 100; ++i) around.note(1, 29);
    EXPECT_LT(neighbourly(around, 1000), 50);
    for (int i = 0; i < 100; ++i) around.note(20, 10);
    EXPECT_EQ(neighbourly(around, 1000), 1000);
}

}  // namespace
}  // namespace hanare::pager
