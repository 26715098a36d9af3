// SPDX-License-Identifier: Apache-2.0
#include "base/bounded_series.hpp"

#include <gtest/gtest.h>

namespace hanare {
namespace {

TEST(BoundedSeries, KeepsAllWhileThereIsRoom) {
    BoundedSeries<int> series(4);
    for (int i = 0; i < 4; ++i) series.add(i);
    EXPECT_EQ(series.entries(), (std::vector<int>{0, 1, 2, 3}));
}

TEST(BoundedSeries, HalvesItsResolutionWhenFull) {
    BoundedSeries<int> series(4);
    for (int i = 0; i < 5; ++i) series.add(i);
    EXPECT_EQ(series.entries(), (std::vector<int>{0, 2, 4}));
    for (int i = 5; i < 9; ++i) series.add(i);
    EXPECT_EQ(series.entries(), (std::vector<int>{0, 4, 8}));
}

TEST(BoundedSeries, StaysBoundedAndEven) {
    for (const size_t most : {2u, 4u, 14u, 2000u}) {
        BoundedSeries<int> series(most);
        for (int i = 0; i < 100000; ++i) series.add(i);
        const std::vector<int>& entries = series.entries();
        ASSERT_GE(entries.size(), 2u);
        ASSERT_LE(entries.size(), most);
        const int step = entries[1] - entries[0];
        for (size_t i = 0; i < entries.size(); ++i) {
            ASSERT_EQ(entries[i], static_cast<int>(i) * step);
        }
        EXPECT_GT(entries.back(), 100000 - 2 * step);
    }
}

TEST(BoundedSeries, TheLastIsKept) {
    BoundedSeries<int> series(4);
    for (int i = 0; i < 6; ++i) series.add(i);
    series.add_last(99);
    EXPECT_EQ(series.entries(), (std::vector<int>{0, 2, 4, 99}));
    BoundedSeries<int> full(4);
    for (int i = 0; i < 4; ++i) full.add(i);
    full.add_last(99);
    EXPECT_EQ(full.entries(), (std::vector<int>{0, 2, 99}));
}

}  // namespace
}  // namespace hanare
