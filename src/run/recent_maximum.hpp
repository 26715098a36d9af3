// SPDX-License-Identifier: Apache-2.0
//
// RecentMaximum: the largest of the latest values, kPeriod to twice as many of them.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace hanare::run {

class RecentMaximum {
public:
    static constexpr uint32_t kPeriod = 10;

    uint64_t update(uint64_t value) {
        if (count_ == kPeriod) {
            before_ = std::exchange(largest_, 0);
            count_ = 0;
        }
        ++count_;
        largest_ = std::max(largest_, value);
        return std::max(before_, largest_);
    }

private:
    uint32_t count_ = 0;
    uint64_t largest_ = 0;  // of this period
    uint64_t before_ = 0;   // of the last one
};

}  // namespace hanare::run
