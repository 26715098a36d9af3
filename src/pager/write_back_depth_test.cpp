// SPDX-License-Identifier: Apache-2.0
#include "pager/write_back_depth.hpp"

#include <gtest/gtest.h>

namespace hanare::pager {

namespace {

constexpr uint64_t kLow = 8 * kMiB;

TEST(WriteBackDepthTest, IsLittleAtFirst) {
    const WriteBackDepth depth;
    EXPECT_FALSE(depth.is_alone());
    EXPECT_EQ(depth.bytes_max(kLow), WriteBackDepth::kBesideReadsBytesMax);
    EXPECT_EQ(depth.bytes_max(kMiB), 2 * kMiB);
}

TEST(WriteBackDepthTest, GrowsWhileNothingIsRead) {
    WriteBackDepth depth;
    depth.note_reads(7);
    depth.note_written(WriteBackDepth::kAloneBytes - 1);
    EXPECT_FALSE(depth.is_alone());
    depth.note_reads(7);
    depth.note_written(1);
    EXPECT_TRUE(depth.is_alone());
    EXPECT_EQ(depth.bytes_max(kLow), 32 * kMiB);
    EXPECT_EQ(depth.bytes_max(kMiB), 4 * kMiB);
}

TEST(WriteBackDepthTest, OneReadEndsIt) {
    WriteBackDepth depth;
    depth.note_written(2 * WriteBackDepth::kAloneBytes);
    depth.note_reads(1);
    EXPECT_FALSE(depth.is_alone());
    EXPECT_EQ(depth.bytes_max(kLow), WriteBackDepth::kBesideReadsBytesMax);
    depth.note_written(WriteBackDepth::kAloneBytes);
    EXPECT_TRUE(depth.is_alone());
}

}  // namespace

}  // namespace hanare::pager
