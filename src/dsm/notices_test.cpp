// SPDX-License-Identifier: Apache-2.0
#include "dsm/notices.hpp"

#include <gtest/gtest.h>

namespace hanare::dsm {
namespace {

TEST(NoticesTest, WhatWasAppendedIsReadAlsoAcrossTheEndOfTheRing) {
    auto made = Notices::make(1, 3);
    ASSERT_TRUE(made.has_value());
    Notices& notices = *made;
    uint32_t number = 0;
    for (uint64_t appended = 0; appended < 3 * Notices::kRingBytes;) {
        const uint64_t begin = notices.position(1);
        std::vector<dsm::Run> runs;
        for (int i = 0; i < 1111; ++i) runs.push_back({number++, 2});
        notices.append(runs);
        const uint64_t bytes = notices.position(1) - begin;
        ASSERT_EQ(bytes, runs.size() * sizeof(dsm::Run));
        std::vector<dsm::Run> read;
        read_runs(notices.pieces(1, begin, bytes), read);
        ASSERT_EQ(read, runs);
        appended += bytes;
    }
    EXPECT_EQ(notices.position(0), 0u);
    EXPECT_EQ(notices.position(2), 0u);
}

TEST(NoticesTest, RunsBecomeDisjoint) {
    std::vector<dsm::Run> runs = {{10, 5}, {3, 2}, {5, 1}, {12, 1}, {100, 0}, {20, 1}, {15, 5}};
    make_disjoint(runs);
    const std::vector<dsm::Run> expected = {{3, 3}, {10, 11}};
    EXPECT_EQ(runs, expected);
}

}  // namespace
}  // namespace hanare::dsm
