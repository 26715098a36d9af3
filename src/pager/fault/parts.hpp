// SPDX-License-Identifier: Apache-2.0
//
// Sets of parts of a block: masks of 64 bits.
#pragma once

#include <bit>
#include <cstdint>

namespace hanare::pager {

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

// The part, and those among `parts` that lie beside it in one run.
constexpr PartRun run_with(uint64_t parts, uint32_t part) {
    const uint64_t at = uint64_t{1} << part;
    const auto before = static_cast<uint32_t>(std::countl_one(parts << (63 - part) << 1));
    const auto behind = static_cast<uint32_t>(std::countr_one((parts | at) >> part));
    return {part - before, before + behind};
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
