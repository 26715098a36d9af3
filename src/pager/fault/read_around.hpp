// SPDX-License-Identifier: Apache-2.0
//
// ReadAround: whether the neighbours of a part that is missing are worth reading with it, as far as
// those of earlier parts were used.  Objects that were allocated together are often used together;
// in a table that is looked up at random they are not, and would displace what is.
//
// Any thread, without a lock: figures that are a little wrong do no harm.
#pragma once

#include <atomic>
#include <cstdint>

#include "pager/fault/recent_share.hpp"

namespace hanare::pager {

class ReadAround {
public:
    static constexpr uint32_t kParts = 4;

    // Parts to be read for one that is missing, beside each other and aligned: kParts or 1.
    uint32_t parts() noexcept {
        if (used_.is_at_least_one_in(kUsefulShare)) return kParts;
        return reads_.fetch_add(1, std::memory_order_relaxed) % kSamplePeriod == 0 ? kParts : 1;
    }

    // Of neighbours that had come with others: a group was used, which then came as a whole; so
    // many parts left without.
    void note(uint32_t used, uint32_t unused) noexcept { used_.note(used, used + unused); }

private:
    // While it is not useful one read in so many tells whether it would be.
    static constexpr uint32_t kSamplePeriod = 32;
    // With one neighbour in so many used it is useful.
    static constexpr uint32_t kUsefulShare = 2;

    std::atomic<uint32_t> reads_{0};
    RecentShare<64, 1024> used_;
};

}  // namespace hanare::pager
