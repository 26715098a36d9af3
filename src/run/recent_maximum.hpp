// SPDX-License-Identifier: Apache-2.0
//
// RecentMaximum: the largest of the values of the last one to two seconds.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hanare::run {

class RecentMaximum {
public:
    static constexpr uint64_t kPeriodNs = 1'000'000'000;

    // `now_ns` does not fall.
    uint64_t update(uint64_t value, uint64_t now_ns) {
        const uint64_t passed_ns = now_ns - begun_ns_;
        if (passed_ns >= kPeriodNs) {
            before_ = passed_ns < 2 * kPeriodNs ? largest_ : 0;
            largest_ = 0;
            begun_ns_ = now_ns;
        }
        largest_ = std::max(largest_, value);
        return std::max(before_, largest_);
    }

private:
    uint64_t begun_ns_ = 0;
    uint64_t largest_ = 0;  // since then
    uint64_t before_ = 0;   // in the period before
};

}  // namespace hanare::run
