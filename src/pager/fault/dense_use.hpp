// SPDX-License-Identifier: Apache-2.0
//
// DenseUse: whether blocks that were found to be in dense use still are when they are needed again,
// as far as those tell that were tested.  Who fills an array uses each block densely, and may look
// up single objects in it ever after.
//
// Any thread, without a lock: figures that are a little wrong do no harm.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/prng.hpp"
#include "pager/fault/recent_share.hpp"

namespace hanare::pager {

class DenseUse {
public:
    // Whether such a block is to be had as a whole, untested.  At random where most still are: who
    // passes through the same blocks over and over would always meet the same ones otherwise.
    bool is_trusted() noexcept {
        if (!found_.is_at_least_one_in(2)) return false;
        uint64_t seed = uses_.fetch_add(1, std::memory_order_relaxed);
        return splitmix64(seed) % kTestPeriod != 0;
    }

    // A test has ended.
    void note(bool is_dense) noexcept { found_.note(is_dense ? 1 : 0, 1); }

private:
    static constexpr uint32_t kTestPeriod = 8;

    std::atomic<uint64_t> uses_{0};
    RecentShare<8, 64> found_;
};

}  // namespace hanare::pager
