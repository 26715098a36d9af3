// SPDX-License-Identifier: Apache-2.0
//
// AheadShare: how much of the budget all streams of a pool together may read ahead.  It is halved
// while much of what was read ahead is given up before anybody used it, down to nothing: many
// streams with little memory push out each other's blocks, and are faster without.  It grows again
// while that does not happen, and each time that this turns out wrong it waits twice as long.
//
// Time is counted in bytes that the pool has given to blocks.  Under a lock of the owner's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace hanare::pager {

class AheadShare {
public:
    static constexpr uint32_t kMost = 4;  // one part in so many of the budget

    uint64_t bytes_of(uint64_t budget_bytes) const {
        return level_ < kLevels ? budget_bytes / kMost >> level_ : 0;
    }

    // A block that was read ahead was used, or given up unused.
    void note_used(uint64_t bytes) { used_bytes_ += bytes; }
    void note_unused(uint64_t bytes) { unused_bytes_ += bytes; }

    // The pool has given `given_bytes` to blocks since its begin.  Less than `least_bytes`, a
    // block, is as good as nothing.
    void adapt(uint64_t given_bytes, uint64_t budget_bytes, uint64_t least_bytes) {
        const uint64_t period_bytes = budget_bytes / kMost;
        if (given_bytes - began_bytes_ < period_bytes) return;
        began_bytes_ = given_bytes;
        const uint64_t used = std::exchange(used_bytes_, 0);
        const uint64_t unused = std::exchange(unused_bytes_, 0);
        // What is given up now was read when the share was another.
        if (std::exchange(settles_, false)) return;
        const auto is_useful = [&](uint32_t level) { return period_bytes >> level >= least_bytes; };
        if (unused > period_bytes / kMany && unused > used / kMany) {
            if (std::exchange(has_grown_, false)) {
                wait_periods_ = std::min(2 * wait_periods_, kWaitMost);
            }
            change_level(is_useful(level_ + 1) ? level_ + 1 : kLevels);
        } else if (++good_periods_ >= wait_periods_) {
            if (std::exchange(has_grown_, false)) wait_periods_ = kWaitLeast;
            if (level_ == 0) return;
            uint32_t level = level_ - 1;
            while (level > 0 && !is_useful(level)) --level;
            change_level(level);
            has_grown_ = true;
        }
    }

private:
    static constexpr uint32_t kMany = 8;    // of what is read ahead, one part in so many in vain
    static constexpr uint32_t kLevels = 8;  // of halving; nothing at the last one
    static constexpr uint32_t kWaitLeast = 4;
    static constexpr uint32_t kWaitMost = 256;

    void change_level(uint32_t level) {
        level_ = std::min(level, kLevels);
        good_periods_ = 0;
        settles_ = true;
    }

    uint32_t level_ = 0;
    bool settles_ = false;                // the level has just changed
    bool has_grown_ = false;              // by the last change, and that has not lasted yet
    uint32_t good_periods_ = 0;           // since then
    uint32_t wait_periods_ = kWaitLeast;  // before it grows
    uint64_t began_bytes_ = 0;            // this period
    uint64_t used_bytes_ = 0;             // in it
    uint64_t unused_bytes_ = 0;
};

}  // namespace hanare::pager
