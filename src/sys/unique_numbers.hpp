// SPDX-License-Identifier: Apache-2.0
//
// UniqueNumbers: numbers that are taken by a process and all its descendants by fork, none of them
// twice, whoever forks or is killed when.
//
// A process gives out the numbers of a range from a word of its own, and takes the next range from
// a counter in memory that all share.  The kernel hands that word to a child as zero
// (MADV_WIPEONFORK), by whatever call it was forked: it cannot go on with its parent's range, even
// if nobody has told it that it is a child.  A child that shares its parent's memory (vfork) shares
// the word, too, which is changed by compare-and-swap only.
//
// Only a copy of the whole process with its shared memory (a snapshot of the machine that goes on
// twice) would take numbers again.
//
// Any thread; take() is async-signal-safe.  What take() has given is the caller's and, where a
// handler that interrupts it forks before it was used, a child's, too: who cannot have that blocks
// signals until then.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.hpp"
#include "sys/memory.hpp"

namespace hanare::sys {

class UniqueNumbers {
public:
    static constexpr uint64_t kRangeNumbers = uint64_t{1} << 24;
    static constexpr uint64_t kRanges = uint64_t{1} << 40;
    static constexpr uint64_t kTakenMax = kRangeNumbers - 1;  // at once

    // Other ranges than the first are for tests of the end.
    static Result<UniqueNumbers> make(uint64_t first_range = 1);

    // `count` numbers in a row: the first of them, never 0.  0: no range is left, nor will be.
    uint64_t take(uint64_t count) noexcept;

private:
    UniqueNumbers(Mapping own, Mapping shared, uint64_t first_range) noexcept;
    uint64_t take_range() noexcept;

    Mapping own_;
    Mapping shared_;
    std::atomic<uint64_t>* next_;        // in own_: the next number of the range, 0: there is none
    std::atomic<uint64_t>* next_range_;  // in shared_
};

}  // namespace hanare::sys
