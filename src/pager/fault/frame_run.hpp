// SPDX-License-Identifier: Apache-2.0
//
// FrameRun: frames whose slots are neighbours, in their order, for blocks that are neighbours in
// the same order: one call of the kernel moves them all, and interrupts the other processors once.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/units.hpp"
#include "pager/fault/frame.hpp"

namespace hanare::pager {

class FrameRun {
public:
    static constexpr uint32_t kMost = 4;
    static constexpr uint64_t kBytesMax = 1 * kMiB;

    explicit FrameRun(Frame& only) noexcept : frames_{&only} {}

    uint32_t count() const noexcept { return count_; }
    Frame& operator[](uint32_t i) const noexcept { return *frames_[i]; }
    Frame& first() const noexcept { return *frames_[0]; }
    Frame& last() const noexcept { return *frames_[count_ - 1]; }
    uint64_t bytes() const noexcept { return count_ * first().bytes; }
    bool has(const Frame& frame) const noexcept {
        return std::find(frames_.begin(), frames_.begin() + count_, &frame) !=
               frames_.begin() + count_;
    }
    // Blocks of that size, at most.
    static uint32_t most_of(uint64_t block_bytes) noexcept {
        return static_cast<uint32_t>(std::clamp<uint64_t>(kBytesMax / block_bytes, 1, kMost));
    }
    bool is_full() const noexcept { return count_ >= most_of(first().bytes); }

    // What lies right before the first or behind the last one.
    void add_before(Frame& frame) noexcept {
        for (uint32_t i = count_++; i > 0; --i) frames_[i] = frames_[i - 1];
        frames_[0] = &frame;
    }
    void add_behind(Frame& frame) noexcept { frames_[count_++] = &frame; }

private:
    std::array<Frame*, kMost> frames_;
    uint32_t count_ = 1;
};

}  // namespace hanare::pager
