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
    // With so many a quarter of the parts of a block that is read is little, and three quarters are
    // never.
    static constexpr uint32_t kPassesMax = 6;

    // A sample has had these parts in use.  Returns in how many passes in a row it had about the
    // same ones, 1 when it had others, kPassesMax at most.  Only some samples are remembered: of
    // others what was found last.
    uint32_t note(uint32_t block, uint64_t parts) noexcept {
        Sample& sample = samples_[block % kSamples];
        if (!is_its(sample, block)) return passes();
        const bool is_same = are_alike(sample.parts.load(std::memory_order_relaxed), parts);
        const uint32_t before = is_same ? sample.passes.load(std::memory_order_relaxed) : 0;
        const uint32_t passes = std::min(before + 1, kPassesMax);
        sample.parts.store(parts, std::memory_order_relaxed);
        sample.passes.store(passes, std::memory_order_relaxed);
        passes_.store(passes, std::memory_order_relaxed);
        return passes;
    }

    // As it was found last.
    uint32_t passes() const noexcept { return passes_.load(std::memory_order_relaxed); }
    // Streams do otherwise now.
    void begin_anew() noexcept { passes_.store(1, std::memory_order_relaxed); }

private:
    // Samples of a region lie apart by no power of two.
    static constexpr uint32_t kSamples = 31;
    // Who has a place and is not met while so many others come that would have it leaves it: more
    // than there are in a pass, unless the region is very large.
    static constexpr uint32_t kOthersMax = 64;

    struct Sample {
        std::atomic<uint32_t> block_behind{0};  // 0: none
        std::atomic<uint32_t> others{0};        // since it was met
        std::atomic<uint32_t> passes{0};
        std::atomic<uint64_t> parts{0};
    };

    // Whether the place is the block's, or becomes it.
    static bool is_its(Sample& sample, uint32_t block) noexcept {
        const uint32_t behind = sample.block_behind.load(std::memory_order_relaxed);
        if (behind != block + 1) {
            const uint32_t others = sample.others.load(std::memory_order_relaxed) + 1;
            sample.others.store(others, std::memory_order_relaxed);
            if (behind != 0 && others <= kOthersMax) return false;
            sample.block_behind.store(block + 1, std::memory_order_relaxed);
            sample.passes.store(0, std::memory_order_relaxed);
            sample.parts.store(0, std::memory_order_relaxed);
        }
        sample.others.store(0, std::memory_order_relaxed);
        return true;
    }

    // Three quarters of what either had are the other's, too.
    static bool are_alike(uint64_t a, uint64_t b) noexcept {
        return std::popcount(a & b) * 4 >= std::popcount(a | b) * 3;
    }

    std::array<Sample, kSamples> samples_;
    std::atomic<uint32_t> passes_{1};
};

}  // namespace hanare::pager
