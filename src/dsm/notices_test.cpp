// SPDX-License-Identifier: Apache-2.0
#include "dsm/notices.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

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
        for (int i = 0; i < 1111; ++i) runs.push_back({3 * number++, 2});
        notices.append(runs);
        const uint64_t bytes = notices.position(1) - begin;
        ASSERT_EQ(bytes, runs.size() * sizeof(dsm::Run));
        auto read = RunList::make(2000).value();
        read_runs(notices.pieces(1, begin, bytes), read);
        ASSERT_TRUE(std::ranges::equal(read.runs(), runs));
        appended += bytes;
    }
    EXPECT_EQ(notices.position(0), 0u);
    EXPECT_EQ(notices.position(2), 0u);
}

// As a peer reads it: the ring first, then how far it was prepared.
TEST(NoticesTest, WhoReadsSeesThatItWasOverwrittenMeanwhile) {
    auto made = Notices::make(0, 1);
    ASSERT_TRUE(made.has_value());
    Notices& notices = *made;
    // A run's number is its place in the log.
    constexpr uint32_t kRuns = 5000;
    std::atomic<bool> is_over{false};
    std::thread writer([&] {
        std::vector<dsm::Run> runs(kRuns);
        while (!is_over) {
            auto number = static_cast<uint32_t>(notices.position(0) / sizeof(dsm::Run));
            for (dsm::Run& run : runs) run = {number++, 1};
            notices.append(runs);
        }
    });
    const auto& prepared = *reinterpret_cast<const std::atomic<uint64_t>*>(
        notices.memory().data() + notices.prepared_offset());
    std::vector<dsm::Run> copy(Notices::kRangeBytesMax / sizeof(dsm::Run));
    uint64_t whole = 0;
    uint64_t lost = 0;
    uint64_t wrong = 0;
    while ((whole < 100 || lost < 100) && wrong == 0) {
        const uint64_t position = notices.position(0);
        if (position < Notices::kRangeBytesMax) continue;
        const uint64_t begin = position - Notices::kRangeBytesMax;
        const auto pieces = notices.pieces(0, begin, Notices::kRangeBytesMax);
        // A slow peer now and then.
        if (lost < 100 && whole >= 100) {
            while (notices.position(0) < position + Notices::kRingBytes) std::this_thread::yield();
        }
        std::memcpy(copy.data(), pieces.first.data(), pieces.first.size());
        std::memcpy(reinterpret_cast<std::byte*>(copy.data()) + pieces.first.size(),
                    pieces.second.data(), pieces.second.size());
        std::atomic_thread_fence(std::memory_order_acquire);
        if (Notices::was_overwritten(begin, prepared.load())) {
            ++lost;
            continue;
        }
        ++whole;
        auto number = static_cast<uint32_t>(begin / sizeof(dsm::Run));
        for (const dsm::Run& run : copy) wrong += run != dsm::Run{number++, 1};
    }
    is_over = true;
    writer.join();
    EXPECT_EQ(wrong, 0u);
}

TEST(NoticesTest, WhatWasLostIsAllBlocksWhereverOneBegins) {
    auto made = Notices::make(0, 2);
    ASSERT_TRUE(made.has_value());
    Notices& notices = *made;
    const uint64_t begin = Notices::kRingBytes - 5 * sizeof(dsm::Run);
    const uint64_t bytes = 10 * sizeof(dsm::Run);
    notices.fill_with_all(1, begin, bytes);
    for (uint64_t skipped = 0; skipped < bytes; skipped += sizeof(dsm::Run)) {
        auto read = RunList::make(20).value();
        read_runs(notices.pieces(1, begin + skipped, bytes - skipped), read);
        read.make_disjoint();
        ASSERT_EQ(read.runs().size(), 1u);
        EXPECT_EQ(read.runs()[0], kAllBlocks);
    }
}

}  // namespace
}  // namespace hanare::dsm
