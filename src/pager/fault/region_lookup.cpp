// SPDX-License-Identifier: Apache-2.0
//
// The side of RegionTable that fault handlers run.
#include <algorithm>

#include "pager/fault/region_table.hpp"

namespace hanare::pager {

Region* RegionTable::enter(const void* address) noexcept {
    const uint32_t side = epoch_.load(std::memory_order_seq_cst) & 1;
    readers_[side].fetch_add(1, std::memory_order_seq_cst);
    Region* found = nullptr;
    if (Snapshot* snapshot = current_.load(std::memory_order_seq_cst)) {
        Region* const* begin = snapshot->regions();
        Region* const* end = begin + snapshot->count;
        Region* const* after = std::upper_bound(
            begin, end, address,
            [](const void* a, const Region* region) { return a < region->begin(); });
        if (after != begin && address < (*(after - 1))->end()) {
            found = *(after - 1);
            found->enter();
        }
    }
    readers_[side].fetch_sub(1, std::memory_order_seq_cst);
    return found;
}

}  // namespace hanare::pager
