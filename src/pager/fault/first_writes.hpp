// SPDX-License-Identifier: Apache-2.0
//
// FirstWrites: whether a part that is read from the store for an access that does not write should
// be writable at once.  Where objects are counted (CPython) nearly all that is read is written
// soon; a first write that faults costs about as much as writing the part back, which was not
// changed.
//
// Any thread, without a lock: figures that are a little wrong do no harm.
#pragma once

#include <atomic>
#include <cstdint>

#include "pager/fault/recent_share.hpp"

namespace hanare::pager {

class FirstWrites {
public:
    bool are_expected() noexcept {
        if (!written_.is_at_least(kOften, kOutOf)) return false;
        return reads_.fetch_add(1, std::memory_order_relaxed) % kSamplePeriod != 0;
    }

    // Of parts that were not writable at first and leave now, so many were written to.
    void note(uint32_t written, uint32_t parts) noexcept { written_.note(written, parts); }

private:
    static constexpr uint32_t kOften = 3;
    static constexpr uint32_t kOutOf = 4;
    // While they are expected one part in so many tells whether they still come.
    static constexpr uint32_t kSamplePeriod = 16;

    std::atomic<uint32_t> reads_{0};
    RecentShare<64, 1024> written_;
};

}  // namespace hanare::pager
