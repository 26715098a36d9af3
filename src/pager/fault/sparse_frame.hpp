// SPDX-License-Identifier: Apache-2.0
//
// What sparse.cpp and shelf.cpp do to the frame of a sparse block.  The owner of the block's
// transient state calls.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <utility>

#include "pager/fault/block.hpp"
#include "pager/fault/frame.hpp"
#include "pager/fault/parts.hpp"
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

// Whether what is used of it is not here and there.
inline bool is_passage(const Frame& frame, uint32_t used) {
    constexpr uint32_t kLeastParts = 4;
    return used >= kLeastParts && run_count(frame.present) <= 2;
}

// It is known how much a stream has used of the block.
inline void end_fill_test(Frame& frame, bool by_half) {
    if (std::exchange(frame.tests_fill, false)) frame.region->fill.note(by_half);
}

// A turn has ended, or another stream comes.  Unless the one before may not have come to its end,
// as it has used more than when the last turn ended.
inline void try_to_end_fill_test(Frame& frame) {
    const auto used = static_cast<uint32_t>(std::popcount(frame.present));
    const bool by_half = used * 2 >= frame.region->parts_per_block;
    const bool has_gone_on = std::exchange(frame.parts_passed, used) != used;
    if (!by_half && has_gone_on && is_passage(frame, used)) return;
    end_fill_test(frame, by_half);
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
