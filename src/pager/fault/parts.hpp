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
