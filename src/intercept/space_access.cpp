// SPDX-License-Identifier: Apache-2.0
//
// What is asked about the space in the place of system calls.  Compiled for general registers only.
#include <algorithm>

#include "intercept/space.hpp"

namespace hanare::intercept {

bool Space::may_access(uintptr_t address, size_t bytes) const noexcept {
    for (size_t index = 0; index < kAreas; ++index) {
        const pager::Region* const region = region_at(index);
        if (region == nullptr) continue;
        const uintptr_t from = std::max(address, reinterpret_cast<uintptr_t>(region->begin()));
        const uintptr_t to = std::min(address + bytes, reinterpret_cast<uintptr_t>(region->end()));
        if (from >= to) continue;
        const uint32_t last = region->index_of(reinterpret_cast<const std::byte*>(to - 1));
        for (uint32_t block = region->index_of(reinterpret_cast<const std::byte*>(from));
             block <= last; ++block) {
            if ((region->access_of(block).load(std::memory_order_relaxed) &
                 pager::block_access::kUsable) == 0) {
                return false;
            }
        }
    }
    return true;
}

}  // namespace hanare::intercept
