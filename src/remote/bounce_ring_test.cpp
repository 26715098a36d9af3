// SPDX-License-Identifier: Apache-2.0
#include "remote/bounce_ring.hpp"

#include <deque>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "base/units.hpp"

namespace hanare::remote {
namespace {

TEST(BounceRing, IsFullAndHasRoomAgain) {
    BounceRing ring = BounceRing::make(64 * kKiB).value();
    std::byte* const first = ring.take(40 * kKiB);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(ring.take(40 * kKiB), nullptr);
    EXPECT_EQ(ring.take(65 * kKiB), nullptr);
    ring.give_back(40 * kKiB);
    EXPECT_EQ(ring.take(40 * kKiB), first);  // nothing fits behind it
}

TEST(BounceRing, PiecesNeverOverlap) {
    constexpr size_t kBytes = 256 * kKiB;
    BounceRing ring = BounceRing::make(kBytes).value();
    Prng prng(3);
    struct Piece {
        std::byte* begin;
        size_t bytes;
        std::byte mark;
    };
    std::deque<Piece> pieces;
    size_t refusals = 0;
    for (int i = 0; i < 20'000; ++i) {
        const size_t bytes = (1 + prng.below(20)) * 4 * kKiB;
        if (std::byte* const begin = ring.take(bytes); begin != nullptr) {
            const auto mark = static_cast<std::byte>(i);
            begin[0] = begin[bytes - 1] = begin[bytes / 2] = mark;
            pieces.push_back({begin, bytes, mark});
        } else {
            ++refusals;
            ASSERT_FALSE(pieces.empty());
        }
        while (!pieces.empty() && (prng.below(3) == 0 || pieces.size() > 8)) {
            const Piece& oldest = pieces.front();
            ASSERT_EQ(oldest.begin[0], oldest.mark);
            ASSERT_EQ(oldest.begin[oldest.bytes / 2], oldest.mark);
            ASSERT_EQ(oldest.begin[oldest.bytes - 1], oldest.mark);
            ring.give_back(oldest.bytes);
            pieces.pop_front();
        }
    }
    EXPECT_GT(refusals, 0u);
}

}  // namespace
}  // namespace hanare::remote
