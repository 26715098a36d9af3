// SPDX-License-Identifier: Apache-2.0
//
// Sets of parts of a block: masks of 64 bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace hanare::pager {

constexpr uint64_t bit_of(uint32_t part) { return uint64_t{1} << part; }

// 0 to 64 ones.
constexpr uint64_t all_ones(uint32_t count) {
    return count == 0 ? 0 : ~uint64_t{0} >> (64 - count);
}

// Of ones beside each other.
constexpr uint32_t run_count(uint64_t parts) {
    return static_cast<uint32_t>(std::popcount(parts & ~(parts << 1)));
}

// Parts beside each other.
struct PartRun {
    uint32_t first;
    uint32_t count;
};

// Of `parts`, in one run that ends before the part, or begins behind it.
constexpr uint32_t count_before(uint64_t parts, uint32_t part) {
    return static_cast<uint32_t>(std::countl_one(parts << (63 - part) << 1));
}
constexpr uint32_t count_behind(uint64_t parts, uint32_t part) {
    return static_cast<uint32_t>(std::countr_one(parts >> part >> 1));
}

// The part, and those among `parts` that lie beside it in one run.
constexpr PartRun run_with(uint64_t parts, uint32_t part) {
    const uint32_t before = count_before(parts, part);
    return {part - before, before + 1 + count_behind(parts, part)};
}

// How somebody passes through a block: so many parts beside this one are there.
struct Passage {
    uint32_t parts = 0;
    bool upwards = true;
};

constexpr Passage passage_to(uint64_t parts, uint32_t part) {
    const uint32_t before = count_before(parts, part);
    const uint32_t behind = count_behind(parts, part);
    return before >= behind ? Passage{before, true} : Passage{behind, false};
}

// The part, and of `parts` those where the passage goes on, in one run of at most `most`.
constexpr PartRun run_ahead(uint64_t parts, uint32_t part, Passage passage, uint32_t most) {
    if (passage.upwards) return {part, std::min(1 + count_behind(parts, part), most)};
    const uint32_t count = std::min(1 + count_before(parts, part), most);
    return {part - (count - 1), count};
}

// Those of the aligned `count` (a power of two) among which it is.
constexpr uint64_t aligned_parts(uint32_t part, uint32_t count) {
    return all_ones(count) << (part / count * count);
}

// Calls visit(first, count) for every run of ones.
template <typename Visit>
void for_each_run(uint64_t parts, Visit visit) {
    while (parts != 0) {
        const auto first = static_cast<uint32_t>(std::countr_zero(parts));
        const auto count = static_cast<uint32_t>(std::countr_one(parts >> first));
        parts &= ~(all_ones(count) << first);
        visit(first, count);
    }
}

}  // namespace hanare::pager
