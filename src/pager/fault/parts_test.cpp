// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/parts.hpp"

#include <gtest/gtest.h>

namespace hanare::pager {
namespace {

TEST(PartsTest, RunsAreCountedAndVisited) {
    for (const uint64_t parts : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 63, ~uint64_t{0},
                                 uint64_t{0x8000'0000'0000'0001}, uint64_t{0x5555'5555'5555'5555},
                                 uint64_t{0xf0f0'0f1e'0000'0003}}) {
        uint32_t runs = 0;
        uint64_t visited = 0;
        for_each_run(parts, [&](uint32_t first, uint32_t count) {
            ++runs;
            visited |= all_ones(count) << first;
        });
        EXPECT_EQ(visited, parts);
        EXPECT_EQ(run_count(parts), runs) << std::hex << parts;
    }
    EXPECT_EQ(run_count(0x5555'5555'5555'5555), 32u);
}

TEST(PartsTest, ARunIsThePartAndWhatLiesBesideIt) {
    const auto expect_run = [](uint64_t parts, uint32_t part, uint32_t first, uint32_t count) {
        const PartRun run = run_with(parts, part);
        EXPECT_EQ(run.first, first);
        EXPECT_EQ(run.count, count);
    };
    expect_run(0b0'1110'0110, 6, 5, 3);
    expect_run(0b0'1110'0110, 1, 1, 2);
    expect_run(0b1'0010, 0, 0, 2);  // itself, too, where it is not among them
    expect_run(0b1'0010, 3, 3, 2);
    expect_run(0, 17, 17, 1);
    expect_run(~uint64_t{0}, 0, 0, 64);
    expect_run(~uint64_t{0}, 63, 0, 64);
    expect_run(uint64_t{0b11} << 62, 63, 62, 2);
}

TEST(PartsTest, APassageGoesOnWhereMoreIsThere) {
    const auto expect_ahead = [](uint64_t parts, uint32_t part, Passage passage, uint32_t most,
                                 uint32_t first, uint32_t count) {
        const PartRun run = run_ahead(parts, part, passage, most);
        EXPECT_EQ(run.first, first);
        EXPECT_EQ(run.count, count);
    };
    const uint64_t present = 0b1011'0001'1110;
    EXPECT_EQ(passage_to(present, 5).parts, 4u);
    EXPECT_TRUE(passage_to(present, 5).upwards);
    EXPECT_EQ(passage_to(present, 7).parts, 2u);
    EXPECT_FALSE(passage_to(present, 7).upwards);
    EXPECT_EQ(passage_to(present, 6).parts, 0u);
    EXPECT_EQ(passage_to(~uint64_t{1}, 0).parts, 63u);
    EXPECT_EQ(passage_to(~uint64_t{0} >> 1, 63).parts, 63u);
    expect_ahead(~present, 5, {4, true}, 64, 5, 3);
    expect_ahead(~present, 5, {4, true}, 2, 5, 2);
    expect_ahead(~present, 7, {2, false}, 64, 5, 3);
    expect_ahead(~present, 7, {2, false}, 2, 6, 2);
    expect_ahead(~uint64_t{0}, 0, {1, true}, 64, 0, 64);
    expect_ahead(~uint64_t{0}, 63, {1, false}, 64, 0, 64);
    expect_ahead(0, 0, {1, false}, 64, 0, 1);
}

TEST(PartsTest, PartsAreAligned) {
    EXPECT_EQ(aligned_parts(5, 4), 0xf0u);
    EXPECT_EQ(aligned_parts(3, 1), 0b1000u);
    EXPECT_EQ(aligned_parts(63, 4), uint64_t{0xf} << 60);
    EXPECT_EQ(aligned_parts(63, 64), ~uint64_t{0});
}

}  // namespace
}  // namespace hanare::pager
