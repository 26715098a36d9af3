// SPDX-License-Identifier: Apache-2.0
//
// StreamFill: whether blocks that streams are given as a whole are used by half, at least.  Where
// they are not (the elements of a list, in the order of their addresses, lie in a part of each
// block), what is used of them may fit in memory, and whole blocks never do: such blocks are split
// as soon as they are used, and the parts that are not used leave soon (decision 24).
//
// Any thread, without a lock: figures that are a little wrong do no harm.
#pragma once

#include <atomic>
#include <cstdint>

#include "pager/fault/recent_share.hpp"

namespace hanare::pager {

class StreamFill {
public:
    bool is_low() const noexcept { return scarce_.is_at_least_one_in(2); }

    // Whether to split a block that a stream has come to: all where that is low, few as tests.
    bool splits() noexcept {
        if (is_low()) return true;
        return blocks_.fetch_add(1, std::memory_order_relaxed) % kTestPeriod == kTestPeriod / 2;
    }

    // Whether a block of which a stream has used parts stays sparse: few do not, as tests.
    bool splits_sparse() noexcept {
        return is_low() && blocks_.fetch_add(1, std::memory_order_relaxed) % kTestPeriod != 0;
    }

    // A block that was split has had its time on the shelf.
    void note(bool by_half) noexcept { scarce_.note(by_half ? 0 : 1, 1); }

private:
    static constexpr uint32_t kTestPeriod = 48;

    std::atomic<uint32_t> blocks_{0};
    RecentShare<4, 12> scarce_;
};

}  // namespace hanare::pager
