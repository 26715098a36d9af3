// SPDX-License-Identifier: Apache-2.0
#include "dsm/run_list.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hanare::dsm {
namespace {

TEST(RunListTest, RunsBecomeDisjoint) {
    auto list = RunList::make(100).value();
    for (const dsm::Run& run :
         std::vector<dsm::Run>{{10, 5}, {3, 2}, {5, 1}, {12, 1}, {100, 0}, {20, 1}, {15, 5}}) {
        list.add(run);
    }
    list.make_disjoint();
    const std::vector<dsm::Run> expected = {{3, 3}, {10, 11}};
    EXPECT_TRUE(std::ranges::equal(list.runs(), expected));
    for (uint32_t block = 0; block < 30; ++block) {
        EXPECT_EQ(list.contains(block), (block >= 3 && block < 6) || (block >= 10 && block < 21));
    }
}

TEST(RunListTest, TooManyRunsAreAllBlocks) {
    auto list = RunList::make(10).value();
    for (uint32_t block = 0; block < 10; ++block) list.add({100 - 2 * block, 1});
    EXPECT_EQ(list.runs().size(), 10u);
    list.add({81, 1});  // room is made by putting together what can be one
    EXPECT_EQ(list.runs().size(), 1u);
    EXPECT_EQ(list.runs()[0], kAllBlocks);
    EXPECT_TRUE(list.contains(0));
    EXPECT_TRUE(list.contains(UINT32_MAX - 1));
}

TEST(RunListTest, RoomIsMadeByPuttingRunsTogether) {
    auto list = RunList::make(10).value();
    for (uint32_t block = 0; block < 100; ++block) list.add({99 - block, 1});
    list.make_disjoint();
    ASSERT_EQ(list.runs().size(), 1u);
    EXPECT_EQ(list.runs()[0], (dsm::Run{0, 100}));
}

TEST(RunListTest, AnyRunIsTaken) {
    auto list = RunList::make(10).value();
    list.add({UINT32_MAX, UINT32_MAX});
    list.add({5, UINT32_MAX});
    list.add({UINT32_MAX - 1, 7});
    list.make_disjoint();
    for (const dsm::Run& run : list.runs()) EXPECT_LE(run.count, UINT32_MAX - run.first);
}

}  // namespace
}  // namespace hanare::dsm
