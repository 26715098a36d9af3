// SPDX-License-Identifier: Apache-2.0
#include "pager/file_room.hpp"

#include <gtest/gtest.h>

#include "base/units.hpp"

namespace hanare::pager {
namespace {

constexpr uint64_t kShare = 192 * kMiB;
constexpr uint64_t kStepNs = 100'000'000;

class FileRoomTest : public testing::Test {
protected:
    // A tenth of a second with so many major faults.
    uint64_t pass(uint64_t faults, bool is_short = true) {
        now_ns_ += kStepNs;
        faults_ += faults;
        return room_.update(now_ns_, faults_, kShare, is_short);
    }

    FileRoom room_;
    uint64_t now_ns_ = 0;
    uint64_t faults_ = 1000;  // of its start
};

TEST_F(FileRoomTest, NothingIsLeftWhereFilesStayInMemory) {
    for (int i = 0; i < 100; ++i) EXPECT_EQ(pass(0), 0U);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(pass(5), 0U);
}

TEST_F(FileRoomTest, NothingIsLeftWhileThereIsMoreToBeHad) {
    for (int i = 0; i < 100; ++i) EXPECT_EQ(pass(1000, false), 0U);
}

TEST_F(FileRoomTest, GrowsUntilTheyStayAndIsGivenBackSlowly) {
    pass(0);
    uint64_t bytes = 0;
    for (int i = 0; i < 7; ++i) bytes = pass(500);
    EXPECT_GT(bytes, 10 * kMiB);
    EXPECT_LT(bytes, 30 * kMiB);
    for (int i = 0; i < 10; ++i) EXPECT_LT(pass(i % 2 == 0 ? 5 : 0), bytes);
    EXPECT_GT(pass(0), bytes / 2);
    for (int i = 0; i < 1000; ++i) pass(0);
    EXPECT_EQ(pass(0), 0U);
}

TEST_F(FileRoomTest, AShortBurstMakesNone) {
    pass(0);
    EXPECT_EQ(pass(5000), 0U);
    EXPECT_EQ(pass(5000), 0U);
    EXPECT_EQ(pass(0), 0U);
    EXPECT_EQ(pass(5000), 0U);
}

TEST_F(FileRoomTest, IsNeverMoreThanAPartOfAShareThatShrinks) {
    pass(0);
    for (int i = 0; i < 20; ++i) pass(500);
    EXPECT_LE(room_.update(now_ns_ + 1, faults_, kShare / 10, true), kShare / 30);
}

TEST_F(FileRoomTest, IsGivenUpWhereItDoesNotHelp) {
    pass(0);
    uint64_t most = 0;
    for (int i = 0; i < 5; ++i) pass(500);
    uint64_t bytes = pass(500);
    for (int i = 0; i < 1000 && bytes != 0; ++i) {
        most = std::max(most, bytes);
        bytes = pass(500);
    }
    EXPECT_EQ(bytes, 0U);
    EXPECT_EQ(most, kShare / 3);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(pass(500), 0U);
    int tried = 0;
    for (int i = 0; i < 300; ++i) tried += pass(500) != 0;
    EXPECT_GT(tried, 0) << "tried again in the end";
}

}  // namespace
}  // namespace hanare::pager
