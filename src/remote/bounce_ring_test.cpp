// SPDX-License-Identifier: Apache-2.0
#include "remote/bounce_ring.hpp"

#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "base/units.hpp"

namespace hanare::remote {
namespace {

TEST(BounceRing, IsFullAndHasRoomAgain) {
    BounceRing ring = BounceRing::make(64 * kKiB, 64 * kKiB).value();
    std::byte* const first = ring.take(40 * kKiB);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(ring.take(40 * kKiB), nullptr);
    EXPECT_EQ(ring.take(65 * kKiB), nullptr);
    ring.give_back(40 * kKiB);
    EXPECT_EQ(ring.take(40 * kKiB), first);  // nothing fits behind it
}

TEST(BounceRing, GrowsForLargePiecesWhenEmpty) {
    BounceRing ring = BounceRing::make(64 * kKiB, 256 * kKiB).value();
    std::byte* const first = ring.take(32 * kKiB);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(ring.take(100 * kKiB), nullptr);
    ring.give_back(32 * kKiB);
    EXPECT_EQ(ring.take(100 * kKiB), first);
    EXPECT_EQ(ring.take(100 * kKiB), first + 100 * kKiB);
    ring.give_back(100 * kKiB);
    ring.give_back(100 * kKiB);
    EXPECT_EQ(ring.take(256 * kKiB), first);
    EXPECT_EQ(ring.take(4 * kKiB), nullptr);
    ring.give_back(256 * kKiB);
    EXPECT_EQ(ring.take(257 * kKiB), nullptr);
}

// One thread takes, of ever larger sizes, another gives back.
TEST(BounceRing, GrowsBesideWhoGivesBack) {
    constexpr size_t kPieces = 4000;
    BounceRing ring = BounceRing::make(16 * kKiB, kMiB).value();
    std::atomic<size_t> taken{0};
    std::vector<std::byte*> pieces(kPieces);
    const auto bytes_of = [](size_t i) { return (1 + i % 16 + i / 200) * 4 * kKiB; };
    std::jthread giver([&] {
        for (size_t i = 0; i < kPieces; ++i) {
            while (taken.load(std::memory_order_acquire) == i) std::this_thread::yield();
            EXPECT_EQ(*pieces[i], static_cast<std::byte>(i));
            EXPECT_EQ(pieces[i][bytes_of(i) - 1], static_cast<std::byte>(i));
            ring.give_back(bytes_of(i));
        }
    });
    for (size_t i = 0; i < kPieces; ++i) {
        while ((pieces[i] = ring.take(bytes_of(i))) == nullptr) std::this_thread::yield();
        *pieces[i] = pieces[i][bytes_of(i) - 1] = static_cast<std::byte>(i);
        taken.store(i + 1, std::memory_order_release);
    }
}

TEST(BounceRing, PiecesNeverOverlap) {
    constexpr size_t kBytes = 256 * kKiB;
    BounceRing ring = BounceRing::make(kBytes / 2, kBytes).value();
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
