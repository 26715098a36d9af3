// SPDX-License-Identifier: Apache-2.0
//
// RepeatedUse: in how many passes in a row the samples of a region's streams (stream_density.hpp)
// had the same parts in use.  A pass that needs some parts of a block pays for all of it; where the
// next passes need the same ones, parts are paid for once, as long as there is room for them.
//
// Any thread; a note that gets lost, or meets another one, does no harm.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace hanare::pager {

class RepeatedUse {
public:
    static constexpr uint32_t kPassesMax = 8;

    // A sample has had these parts in use.  Returns in how many passes in a row it had about the
    // same ones: 1 when it is new or had others, kPassesMax at most.
    uint32_t note(uint32_t block, uint64_t parts) noexcept {
        Sample& sample = samples_[block % kSamples];
        const bool is_same = sample.block_behind.load(std::memory_order_relaxed) == block + 1 &&
                             are_alike(sample.parts.load(std::memory_order_relaxed), parts);
        const uint32_t before = is_same ? sample.passes.load(std::memory_order_relaxed) : 0;
        const uint32_t passes = std::min(before + 1, kPassesMax);
        sample.block_behind.store(block + 1, std::memory_order_relaxed);
        sample.parts.store(parts, std::memory_order_relaxed);
        sample.passes.store(passes, std::memory_order_relaxed);
        return passes;
    }

private:
    // Samples of a region lie apart by no power of two, and few are met in a pass.
    static constexpr uint32_t kSamples = 31;

    struct Sample {
        std::atomic<uint32_t> block_behind{0};  // 0: none
        std::atomic<uint32_t> passes{0};
        std::atomic<uint64_t> parts{0};
    };

    // Three quarters of what either had are the other's, too.
    static bool are_alike(uint64_t a, uint64_t b) noexcept {
        return std::popcount(a & b) * 4 >= std::popcount(a | b) * 3;
    }

    std::array<Sample, kSamples> samples_;
};

}  // namespace hanare::pager
