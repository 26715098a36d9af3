// SPDX-License-Identifier: Apache-2.0
//
// What sparse.cpp and shelf.cpp do to the frame of a sparse block.  The owner of the block's
// transient state calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <utility>

#include "pager/fault/block.hpp"
#include "pager/fault/frame.hpp"
#include "pager/fault/region.hpp"
#include "sys/memory.hpp"

namespace hanare::pager {

// Others may look, too (residency.hpp).
inline void store_mask(uint64_t& mask, uint64_t parts) {
    std::atomic_ref(mask).store(parts, std::memory_order_release);
}

// Whether the block is in dense use is found anew.
inline void begin_test(Frame& frame) {
    std::atomic<uint32_t>& word = frame.region->block(frame.block).word;
    frame.tests_use =
        (word.fetch_and(~block_word::kDense, std::memory_order_relaxed) & block_word::kDense) != 0;
}

// It is known how much a stream has used of the block.
inline void end_fill_test(Frame& frame, bool by_half) {
    if (std::exchange(frame.tests_fill, false)) frame.region->fill.note(by_half);
}

inline void clear_shelf(const Region& region, uint32_t index) {
    sys::advise(region.shelf_of(index), region.block_bytes, MADV_DONTNEED);
}

inline std::byte* address_of_part(const Region& region, uint32_t index, uint32_t part) {
    return region.address_of(index) + part * region.part_bytes;
}

inline std::byte* shelf_of_part(const Region& region, uint32_t index, uint32_t part) {
    return region.shelf_of(index) + part * region.part_bytes;
}

}  // namespace hanare::pager
