// SPDX-License-Identifier: Apache-2.0
//
// Bookkeeping of address ranges: what a program has mapped where (RangeMap), and which runs of
// blocks nobody uses (BlockGaps).  Not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace hanare::intercept {

enum class RangeKind : uint8_t {
    kUsable,    // memory of the program's, kept by Hanare
    kReserved,  // not accessible (PROT_NONE); what it held is kept
    kGuarded,   // in local memory for good, with a protection that the kernel enforces
    kSealed,    // the same, and that protection is PROT_NONE
    kForeign,   // mapped by the kernel alone: files, code, what is shared
};

struct Range {
    uintptr_t begin;
    uintptr_t end;
    RangeKind kind;
};

// Ranges that do not overlap; neighbours of the same kind are one.
class RangeMap {
public:
    // Also replaces what was there.
    void set(uintptr_t begin, uintptr_t end, RangeKind kind);
    void erase(uintptr_t begin, uintptr_t end);
    // What is known of [begin, end), cut off at its ends, in order.
    std::vector<Range> overlapping(uintptr_t begin, uintptr_t end) const;
    bool any(uintptr_t begin, uintptr_t end) const;
    bool any(uintptr_t begin, uintptr_t end, RangeKind kind) const;
    // The first piece of that kind in [begin, end), cut off at its ends.  Allocates nothing.
    std::optional<Range> first(uintptr_t begin, uintptr_t end, RangeKind kind) const noexcept;
    // All of it is of that kind.
    bool all(uintptr_t begin, uintptr_t end, RangeKind kind) const;
    uint64_t bytes(RangeKind kind) const noexcept { return bytes_[static_cast<size_t>(kind)]; }

private:
    struct Rest {
        uintptr_t end;
        RangeKind kind;
    };
    using Map = std::map<uintptr_t, Rest>;
    // The first that ends behind `address`.
    Map::const_iterator first_behind(uintptr_t address) const noexcept;
    void count(uintptr_t begin, const Rest& rest, bool added) noexcept;
    Map::iterator insert(uintptr_t begin, Rest rest);
    void remove(Map::const_iterator position);

    Map ranges_;
    uint64_t bytes_[5] = {};
};

// Runs of blocks [begin, end) that are free.
class BlockGaps {
public:
    // The first block of `count` that are free and taken now: from the shortest run that is long
    // enough, the lowest of these.
    std::optional<uint32_t> take(uint32_t count);
    // These, if they are free.
    bool take_at(uint32_t begin, uint32_t count);
    void give(uint32_t begin, uint32_t count);
    // How many blocks from `begin` on are free.
    uint32_t free_from(uint32_t begin) const;

private:
    void add(uint32_t begin, uint32_t end);
    void drop(std::map<uint32_t, uint32_t>::iterator gap);

    std::map<uint32_t, uint32_t> gaps_;
    std::set<std::pair<uint32_t, uint32_t>> by_length_;
};

}  // namespace hanare::intercept
