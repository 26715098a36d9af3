// SPDX-License-Identifier: Apache-2.0
//
// PartUse: which parts of a sparse block need not go to the shelf in its next turns, since they
// came back from there before.  One that came back once is passed over for one turn, one that came
// back again for three each time: what is in use all the time costs fewer faults, and what is on
// the shelf is what may leave (decision 24).
//
// Masks of parts.  The owner's of the block.
#pragma once

#include <cstdint>

namespace hanare::pager {

class PartUse {
public:
    // A turn of the block begins: those that are passed over in it.
    uint64_t begin_turn() noexcept {
        const uint64_t spared = low_ | high_;
        const uint64_t high = high_ & low_;
        low_ = spared & ~low_;
        high_ = high;
        return spared;
    }

    // They came back from the shelf, to which they were withdrawn.
    void note_used(uint64_t parts) noexcept {
        low_ |= parts;
        high_ = (high_ & ~parts) | (parts & used_);
        used_ |= parts;
    }

    // They leave.
    void forget(uint64_t parts) noexcept {
        used_ &= ~parts;
        low_ &= ~parts;
        high_ &= ~parts;
    }

private:
    uint64_t used_ = 0;
    // Turns that are left, in two bits.
    uint64_t low_ = 0;
    uint64_t high_ = 0;
};

}  // namespace hanare::pager
