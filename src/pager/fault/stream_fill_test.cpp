// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/stream_fill.hpp"

#include <gtest/gtest.h>

namespace hanare::pager {
namespace {

int split_of(StreamFill& fill, int blocks) {
    int count = 0;
    for (int i = 0; i < blocks; ++i) count += fill.splits() ? 1 : 0;
    return count;
}

TEST(StreamFillTest, FewBlocksAreTestedWhereNothingIsKnown) {
    StreamFill fill;
    EXPECT_EQ(split_of(fill, 480), 10);
    EXPECT_FALSE(fill.is_low());
}

TEST(StreamFillTest, AllAreSplitWhereHalfOfThemAreNotUsedByHalf) {
    StreamFill fill;
    for (int i = 0; i < 3; ++i) fill.note(false);
    EXPECT_FALSE(fill.is_low());
    for (int i = 0; i < 3; ++i) fill.note(true);
    EXPECT_TRUE(fill.is_low());
    EXPECT_EQ(split_of(fill, 480), 480);
}

TEST(StreamFillTest, FollowsWhatIsNewSoon) {
    StreamFill fill;
    for (int i = 0; i < 100; ++i) fill.note(true);
    for (int i = 0; i < 12; ++i) fill.note(false);
    EXPECT_TRUE(fill.is_low());
    for (int i = 0; i < 12; ++i) fill.note(true);
    EXPECT_FALSE(fill.is_low());
}

}  // namespace
}  // namespace hanare::pager
