// SPDX-License-Identifier: Apache-2.0
//
// RecentShare: how often something was found lately.  Older findings count less and less.
//
// Any thread, without a lock: figures that are a little wrong do no harm.
#pragma once

#include <atomic>
#include <cstdint>

namespace hanare::pager {

// Halved at `most` tries; below `least` it says nothing.
template <uint32_t least, uint32_t most>
class RecentShare {
public:
    void note(uint32_t found, uint32_t tried) noexcept {
        uint32_t all_tried = tried_.load(std::memory_order_relaxed) + tried;
        uint32_t all_found = found_.load(std::memory_order_relaxed) + found;
        if (all_tried >= most) {
            all_tried /= 2;
            all_found /= 2;
        }
        tried_.store(all_tried, std::memory_order_relaxed);
        found_.store(all_found, std::memory_order_relaxed);
    }

    // Whether it was found one time in so many at least.
    bool is_at_least_one_in(uint32_t times) const noexcept { return is_at_least(1, times); }

    // `times` in so many `tries`.
    bool is_at_least(uint32_t times, uint32_t tries) const noexcept {
        const uint32_t tried = tried_.load(std::memory_order_relaxed);
        return tried >= least && found_.load(std::memory_order_relaxed) * tries >= tried * times;
    }

private:
    std::atomic<uint32_t> tried_{0};
    std::atomic<uint32_t> found_{0};
};

}  // namespace hanare::pager
