// SPDX-License-Identifier: Apache-2.0
//
// StreamDensity: whether the streams of a region use most of each block, or little of it.
//
// Streams are given whole blocks ahead of their needs, so how much of them is used does not show. A
// few blocks are therefore served by parts, as samples; the more of these were used up, the fewer,
// though every pass through a region of 64 blocks or more meets two.  After two in a row of which
// little was used, streams are served by parts altogether, until one of them needs much of a block
// in one go.
//
// Any thread; a note that gets lost between two of them does no harm.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

namespace hanare::pager {

class StreamDensity {
public:
    bool is_low() const noexcept { return level() == kLowest; }

    // Whether streams meet the block by parts although they get whole ones.  `block_count`: of the
    // region.
    bool samples(uint32_t block, uint32_t block_count) const noexcept {
        constexpr uint32_t kGoldenRatio = 0x9e3779b1;  // of 2^32: spreads evenly
        const uint32_t share = block_count / (kPerPass << kMostOftenLog2);
        const auto rarest = static_cast<int32_t>(std::bit_width(share)) - 1;
        const auto rarity = static_cast<uint32_t>(std::clamp(level(), 0, std::max(rarest, 0)));
        return (block + kFirst) * kGoldenRatio >> (32 - kMostOftenLog2 - rarity) == 0;
    }

    // A block that was served by parts was used up, or was not.
    void note(bool used_up) noexcept {
        const int32_t now = level();
        const int32_t next =
            used_up ? std::min(std::max(now, -1) + 1, kHighest) : std::min(now, 0) - 1;
        level_.store(std::max(next, kLowest), std::memory_order_relaxed);
    }

private:
    static constexpr uint32_t kFirst = 69;         // so that samples begin early: 20, 54, ...
    static constexpr uint32_t kMostOftenLog2 = 5;  // one block of 32
    static constexpr uint32_t kPerPass = 2;        // samples, where the region is large enough
    static constexpr int32_t kHighest = 4;         // one of 512
    static constexpr int32_t kLowest = -2;

    int32_t level() const noexcept { return level_.load(std::memory_order_relaxed); }

    std::atomic<int32_t> level_{0};
};

}  // namespace hanare::pager
