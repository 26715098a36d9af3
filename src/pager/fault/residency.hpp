// SPDX-License-Identifier: Apache-2.0
//
// Whether parts of a block can be used without a fault, for who does not own the block.
#pragma once

#include <atomic>
#include <cstdint>

#include "pager/fault/parts.hpp"
#include "pager/fault/region.hpp"

namespace hanare::pager {

// Parts [first, last].  True stays true as long as they are held (holds.hpp) and were so before;
// else it is a hint.  Any thread.
inline bool are_present(const Region& region, uint32_t index, uint32_t first, uint32_t last,
                        bool write) noexcept {
    const Block& block = region.block(index);
    const uint32_t word = block.load();
    const BlockState state = block_word::state(word);
    if (state == BlockState::kWritable) return true;
    if (state == BlockState::kReadOnly) return !write;
    if (state != BlockState::kSparse) return false;
    Frame& frame = *region.frame_of(block);
    uint64_t present = std::atomic_ref(frame.present).load(std::memory_order_acquire);
    if (write) present &= std::atomic_ref(frame.dirty).load(std::memory_order_acquire);
    const uint64_t wanted = all_ones(last - first + 1) << first;
    return (wanted & ~present) == 0 && block.load() == word;
}

}  // namespace hanare::pager
