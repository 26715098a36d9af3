// SPDX-License-Identifier: Apache-2.0
#include "remote/silence.hpp"

#include <gtest/gtest.h>

namespace hanare::remote {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kLimit = 3000 * kMs;

TEST(Silence, IsOverTheLimitWhereNothingMoves) {
    Silence silence;
    uint64_t now = 1000 * kMs;
    const uint64_t begin = now;
    while (!silence.is_longer_than(kLimit, 7, now)) now += 50 * kMs;
    EXPECT_EQ(now - begin, kLimit);
}

TEST(Silence, EndsWithEachByte) {
    Silence silence;
    uint64_t now = 1000 * kMs;
    for (uint64_t moved = 0; moved < 10; ++moved) {
        for (uint64_t ms = 0; ms < 2900; ms += 50, now += 50 * kMs) {
            ASSERT_FALSE(silence.is_longer_than(kLimit, moved, now));
        }
    }
}

TEST(Silence, DoesNotPassWhileNobodyLooks) {
    Silence silence;
    EXPECT_FALSE(silence.is_longer_than(kLimit, 7, 1000 * kMs));
    EXPECT_FALSE(silence.is_longer_than(kLimit, 7, 60'000 * kMs));
    EXPECT_FALSE(silence.is_longer_than(kLimit, 7, 60'100 * kMs));
}

}  // namespace
}  // namespace hanare::remote
