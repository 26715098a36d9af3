// SPDX-License-Identifier: Apache-2.0
//
// Deadline: a time limit in milliseconds, negative for none, that several waits share.
#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>

#include "sys/clock.hpp"

namespace hanare::job {

class Deadline {
public:
    explicit Deadline(int timeout_ms) noexcept
        : end_ns_(timeout_ms < 0 ? kNever
                                 : sys::now_ns() + static_cast<uint64_t>(timeout_ms) * kNsPerMs) {}

    bool is_over() const noexcept { return end_ns_ != kNever && sys::now_ns() >= end_ns_; }
    // For the next wait: -1 without a limit, 0 when it is over.
    int left_ms() const noexcept {
        if (end_ns_ == kNever) return -1;
        const uint64_t now = sys::now_ns();
        if (now >= end_ns_) return 0;
        const uint64_t left = (end_ns_ - now) / kNsPerMs + 1;
        return static_cast<int>(std::min<uint64_t>(left, INT_MAX));
    }
    // The same, but no longer than that.
    int left_ms(int most) const noexcept {
        const int left = left_ms();
        return left < 0 ? most : std::min(left, most);
    }

private:
    static constexpr uint64_t kNever = UINT64_MAX;
    static constexpr uint64_t kNsPerMs = 1'000'000;

    const uint64_t end_ns_;
};

}  // namespace hanare::job
