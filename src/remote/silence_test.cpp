// SPDX-License-Identifier: Apache-2.0
#include "remote/silence.hpp"

#include <gtest/gtest.h>

namespace hanare::remote {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kLimit = 3000 * kMs;

using Progress = fabric::TcpLink::Progress;
constexpr Progress kMoved = {.bytes = 7, .requests = 7};

TEST(Silence, IsOverTheLimitWhereNothingMoves) {
    Silence silence;
    uint64_t now = 1000 * kMs;
    const uint64_t begin = now;
    while (!silence.is_longer_than(kLimit, kMoved, now)) now += 50 * kMs;
    EXPECT_EQ(now - begin, kLimit);
}

// How long it takes until `step` more in each 2.9 s is silence; 0: it is none in an hour.
uint64_t time_until_silence(Progress step) {
    Silence silence;
    Progress moved = kMoved;
    const uint64_t begin = 1000 * kMs;
    uint64_t now = begin;
    while (now < begin + 3'600'000 * kMs) {
        for (uint64_t ms = 0; ms < 2900; ms += 50, now += 50 * kMs) {
            if (silence.is_longer_than(kLimit, moved, now)) return now - begin;
        }
        moved.bytes += step.bytes;
        moved.requests += step.requests;
    }
    return 0;
}

TEST(Silence, EndsWithWhatALinkMoves) {
    EXPECT_EQ(time_until_silence({.bytes = Silence::kLeastBytes}), 0u);
    // 100 kbit/s.
    EXPECT_EQ(time_until_silence({.bytes = 100'000 / 8 * 29 / 10}), 0u);
    EXPECT_EQ(time_until_silence({.bytes = 40, .requests = 1}), 0u);
}

TEST(Silence, DoesNotEndWithSingleBytes) {
    EXPECT_EQ(time_until_silence({.bytes = 1}), kLimit);
    EXPECT_EQ(time_until_silence({.bytes = Silence::kLeastBytes / 2}), kLimit);
}

// Where they come often enough they are something.
TEST(Silence, SmallPartsAddUp) {
    Silence silence;
    Progress moved;
    for (uint64_t now = 1000 * kMs; now < 60'000 * kMs; now += 50 * kMs, moved.bytes += 100) {
        ASSERT_FALSE(silence.is_longer_than(kLimit, moved, now));
    }
}

TEST(Silence, DoesNotPassWhileNobodyLooks) {
    Silence silence;
    EXPECT_FALSE(silence.is_longer_than(kLimit, kMoved, 1000 * kMs));
    EXPECT_FALSE(silence.is_longer_than(kLimit, kMoved, 60'000 * kMs));
    EXPECT_FALSE(silence.is_longer_than(kLimit, kMoved, 60'100 * kMs));
}

}  // namespace
}  // namespace hanare::remote
