// SPDX-License-Identifier: Apache-2.0
#include "pager/write_back_depth.hpp"

#include <gtest/gtest.h>

namespace hanare::pager {

namespace {

constexpr uint64_t kLow = 8 * kMiB;
constexpr uint64_t kFrames = 64 * kMiB;

TEST(WriteBackDepthTest, IsLittleAtFirst) {
    const WriteBackDepth depth;
    EXPECT_FALSE(depth.is_alone());
    EXPECT_EQ(depth.bytes_max(kLow), WriteBackDepth::kBesideReadsBytesMax);
    EXPECT_EQ(depth.bytes_max(kMiB), 2 * kMiB);
}

TEST(WriteBackDepthTest, GrowsWhileNothingIsRead) {
    WriteBackDepth depth;
    depth.note_program(7, 0, kFrames);
    depth.note_written(WriteBackDepth::kAloneBytes - 1);
    EXPECT_FALSE(depth.is_alone());
    depth.note_program(7, 0, kFrames);
    depth.note_written(1);
    EXPECT_TRUE(depth.is_alone());
    EXPECT_EQ(depth.bytes_max(kLow), 32 * kMiB);
    EXPECT_EQ(depth.bytes_max(kMiB), 4 * kMiB);
}

TEST(WriteBackDepthTest, OneReadEndsIt) {
    WriteBackDepth depth;
    depth.note_written(2 * WriteBackDepth::kAloneBytes);
    depth.note_program(1, 0, kFrames);
    EXPECT_FALSE(depth.is_alone());
    EXPECT_EQ(depth.bytes_max(kLow), WriteBackDepth::kBesideReadsBytesMax);
    depth.note_written(WriteBackDepth::kAloneBytes);
    EXPECT_TRUE(depth.is_alone());
}

TEST(WriteBackDepthTest, WritesAheadWhatWasBegunAndOnce) {
    constexpr uint64_t kMostInUse = kFrames / 2;
    WriteBackDepth depth;
    EXPECT_FALSE(depth.is_ahead_of_need(kFrames, kMostInUse)) << "nothing was begun";
    depth.note_program(0, 24 * kMiB, kFrames);
    EXPECT_FALSE(depth.is_ahead_of_need(kFrames, kFrames - 16 * kMiB)) << "little is in use";
    EXPECT_TRUE(depth.is_ahead_of_need(kFrames, kMostInUse));
    depth.note_written(16 * kMiB);
    EXPECT_TRUE(depth.is_ahead_of_need(kFrames, kMostInUse));
    depth.note_clean(8 * kMiB);
    EXPECT_FALSE(depth.is_ahead_of_need(kFrames, kMostInUse));
    depth.note_program(0, 25 * kMiB, kFrames);
    EXPECT_TRUE(depth.is_ahead_of_need(kFrames, kMostInUse));
    depth.note_program(1, 25 * kMiB, kFrames);
    EXPECT_FALSE(depth.is_ahead_of_need(kFrames, kMostInUse)) << "what was read has room first";
}

// Regions that were freed leave nothing to write.
TEST(WriteBackDepthTest, OwesNoMoreThanTheFramesHold) {
    WriteBackDepth depth;
    depth.note_program(0, 1000 * kMiB, kFrames);
    EXPECT_TRUE(depth.is_ahead_of_need(kFrames, 0));
    depth.note_written(kFrames);
    EXPECT_FALSE(depth.is_ahead_of_need(kFrames, 0));
}

}  // namespace

}  // namespace hanare::pager
