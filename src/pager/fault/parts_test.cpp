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

}  // namespace
}  // namespace hanare::pager
