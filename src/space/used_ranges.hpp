// SPDX-License-Identifier: Apache-2.0
//
// What of a partition is in use: ranges in order that neither overlap nor touch, in memory that the
// caller gives.  Neither allocates nor locks; no vector registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hanare::space {

struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
};

class UsedRanges {
public:
    // Nothing is in use.  `room` is for as many ranges as there can be.
    void begin(std::span<Range> room, Range whole) noexcept;

    void clear() noexcept { count_ = 0; }

    Range whole() const noexcept { return whole_; }
    bool contains(Range range) const noexcept {
        return range.begin >= whole_.begin && range.end <= whole_.end && range.begin <= range.end;
    }
    size_t count() const noexcept { return count_; }

    // In use from now on, or no longer, be it before or not.  What lies outside of the whole is
    // ignored.  False, and nothing has changed: there is no room for another range.
    bool add(Range range) noexcept;
    bool remove(Range range) noexcept;

    bool is_free(Range range) const noexcept;
    // The first place from `from` on where so much is free; 0: there is none.  `alignment` is a
    // power of two.
    uint64_t find_free(uint64_t bytes, uint64_t alignment, uint64_t from) const noexcept;

private:
    Range clipped(Range range) const noexcept;
    // Of the ranges; the first that ends behind the address.
    size_t first_behind(uint64_t address) const noexcept;
    bool replace(size_t from, size_t until, std::span<const Range> by) noexcept;

    std::span<Range> ranges_;
    size_t count_ = 0;
    Range whole_;
};

}  // namespace hanare::space
