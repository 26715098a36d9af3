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

namespace hanare::pager {

class ReadAround {
public:
    // Parts to be read for one that is missing, beside each other and aligned: kParts or 1.
    uint32_t parts() noexcept {
        if (is_useful()) return kParts;
        return reads_.fetch_add(1, std::memory_order_relaxed) % kSamplePeriod == 0 ? kParts : 1;
    }

    // Of neighbours that had come with others, so many were used in a turn on the shelf.
    void note(uint32_t used, uint32_t unused) noexcept {
        uint32_t judged = judged_.load(std::memory_order_relaxed) + used + unused;
        uint32_t all_used = used_.load(std::memory_order_relaxed) + used;
        if (judged >= kJudgedMax) {
            judged /= 2;
            all_used /= 2;
        }
        judged_.store(judged, std::memory_order_relaxed);
        used_.store(all_used, std::memory_order_relaxed);
    }

private:
    static constexpr uint32_t kParts = 4;
    // While it is not useful one read in so many tells whether it would be.
    static constexpr uint32_t kSamplePeriod = 32;
    static constexpr uint32_t kJudgedMin = 64;
    static constexpr uint32_t kJudgedMax = 1024;
    // With one neighbour in so many used it is useful.
    static constexpr uint32_t kUsefulShare = 7;

    bool is_useful() const noexcept {
        const uint32_t judged = judged_.load(std::memory_order_relaxed);
        return judged >= kJudgedMin &&
               used_.load(std::memory_order_relaxed) * kUsefulShare >= judged;
    }

    std::atomic<uint32_t> reads_{0};
    std::atomic<uint32_t> judged_{0};
    std::atomic<uint32_t> used_{0};
};

}  // namespace hanare::pager
