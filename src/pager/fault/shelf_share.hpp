// SPDX-License-Identifier: Apache-2.0
//
// ShelfShare: how much of the budget is withdrawn to see whether it is used again.  The more it is,
// the better is known what may leave, and the more faults bring back what is in use.  A read from
// the store costs as much as several of these, so their number follows the number of reads
// (decision 23).
//
// Under a lock of the owner's.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hanare::pager {

class ShelfShare {
public:
    uint64_t bytes_of(uint64_t budget_bytes) const { return budget_bytes / kWhole * share_; }

    // A part, or a block as a whole, came back.
    void note_return() {
        ++returns_;
        adapt();
    }
    // One had to be read.
    void note_need() {
        ++needs_;
        adapt();
    }

private:
    static constexpr uint32_t kWhole = 256;
    static constexpr uint32_t kMost = kWhole / 2;
    static constexpr uint32_t kLeast = kWhole / 16;
    // Returns for one need.
    static constexpr uint32_t kFew = 2;
    static constexpr uint32_t kMany = 4;
    static constexpr uint32_t kPeriod = 1024;

    void adapt() {
        if (returns_ + kFew * needs_ < kPeriod) return;
        if (returns_ > kMany * needs_) {
            share_ = std::max(share_ - share_ / 8, kLeast);
        } else if (returns_ < kFew * needs_) {
            share_ = std::min(share_ + share_ / 8, kMost);
        }
        returns_ = needs_ = 0;
    }

    uint32_t share_ = kMost;
    uint32_t returns_ = 0;
    uint32_t needs_ = 0;
};

}  // namespace hanare::pager
