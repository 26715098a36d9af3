// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/part_use.hpp"

#include <gtest/gtest.h>

namespace hanare::pager {
namespace {

constexpr uint64_t kOnce = 0b0001;
constexpr uint64_t kOften = 0b0110;

TEST(PartUseTest, WhatWasNotUsedTakesEveryTurn) {
    PartUse use;
    EXPECT_EQ(use.begin_turn(), 0u);
    EXPECT_EQ(use.begin_turn(), 0u);
}

TEST(PartUseTest, WhatCameBackOnceIsPassedOverOnce) {
    PartUse use;
    use.note_used(kOnce);
    EXPECT_EQ(use.begin_turn(), kOnce);
    EXPECT_EQ(use.begin_turn(), 0u);
}

TEST(PartUseTest, WhatComesBackAgainIsPassedOverThreeTimes) {
    PartUse use;
    use.note_used(kOften);
    for (int round = 0; round < 3; ++round) {
        while (use.begin_turn() != 0) {
        }
        use.note_used(kOften | (round == 2 ? kOnce : 0));
    }
    EXPECT_EQ(use.begin_turn(), kOften | kOnce);
    EXPECT_EQ(use.begin_turn(), kOften);
    EXPECT_EQ(use.begin_turn(), kOften);
    EXPECT_EQ(use.begin_turn(), 0u);
}

TEST(PartUseTest, WhatLeavesBeginsAnew) {
    PartUse use;
    use.note_used(kOften);
    use.note_used(kOften);
    use.forget(kOften);
    EXPECT_EQ(use.begin_turn(), 0u);
    use.note_used(kOften);
    EXPECT_EQ(use.begin_turn(), kOften);
    EXPECT_EQ(use.begin_turn(), 0u);
}

TEST(PartUseTest, TheLastPartIsOneOfThem) {
    PartUse use;
    constexpr uint64_t last = uint64_t{1} << 63;
    use.note_used(last);
    use.note_used(last);
    for (int turn = 0; turn < 3; ++turn) EXPECT_EQ(use.begin_turn(), last);
    EXPECT_EQ(use.begin_turn(), 0u);
}

}  // namespace
}  // namespace hanare::pager
