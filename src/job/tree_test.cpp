// SPDX-License-Identifier: Apache-2.0
#include "job/tree.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace hanare::job {
namespace {

// Everybody is some other's child exactly once, and both sides agree.
void expect_a_tree(uint32_t tasks, uint32_t arity, uint32_t root) {
    const Tree tree(tasks, arity, root);
    std::vector<uint32_t> parents(tasks, 0);
    for (uint32_t rank = 0; rank < tasks; ++rank) {
        const Tree::Place place = tree.place_of(rank);
        ASSERT_EQ(place.parent.has_value(), rank != root);
        ASSERT_LE(place.children.size(), arity);
        uint32_t led = 1;
        for (uint32_t index = 0; index < place.children.size(); ++index) {
            const Tree::Child& child = place.children[index];
            // A run: each child begins where the one before ends.
            ASSERT_EQ(child.rank, (rank + led) % tasks);
            const Tree::Place below = tree.place_of(child.rank);
            ASSERT_EQ(below.parent, rank);
            ASSERT_EQ(below.index, index);
            ASSERT_EQ(below.tasks, child.tasks);
            ++parents[child.rank];
            led += child.tasks;
        }
        ASSERT_EQ(led, place.tasks);
    }
    for (uint32_t rank = 0; rank < tasks; ++rank) ASSERT_EQ(parents[rank], rank == root ? 0u : 1u);
}

TEST(Tree, EverySizeArityAndRoot) {
    for (const uint32_t tasks : {1u, 2u, 3u, 7u, 9u, 16u, 64u, 100u}) {
        for (const uint32_t arity : {1u, 2u, 8u, 32u, tasks}) {
            for (const uint32_t root : {0u, tasks / 2, tasks - 1}) {
                expect_a_tree(tasks, arity, root);
            }
        }
    }
}

TEST(Tree, LargestJobIsFlat) {
    constexpr uint32_t kTasks = 65536;
    const Tree tree(kTasks, 8, kTasks - 1);
    uint32_t rank = kTasks - 2;  // the last one
    uint32_t depth = 0;
    while (const auto parent = tree.place_of(rank).parent) {
        rank = *parent;
        ++depth;
    }
    EXPECT_EQ(rank, kTasks - 1);
    EXPECT_LE(depth, 6u);
}

}  // namespace
}  // namespace hanare::job
