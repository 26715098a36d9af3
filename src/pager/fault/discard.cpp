// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/holds.hpp"
#include "pager/fault/pager.hpp"

namespace hanare::pager {

using block_word::kDense;
using block_word::kDirty;
using block_word::kStored;

hanare_status Pager::discard(Region& region, uint32_t index) noexcept {
    Block& block = region.block(index);
    for (;;) {
        if (region.is_closing()) return HANARE_STATUS_NOT_FOUND;
        const uint32_t word = block.load();
        if (block_word::transient(word)) {
            wait(block, word);
            continue;
        }
        const BlockState state = block_word::state(word);
        const bool mapped = state != BlockState::kAbsent && state != BlockState::kStaged;
        const bool may_be_refused = fault_service_ != nullptr;
        const bool is_empty = state == BlockState::kAbsent && (word & kStored) == 0;
        if (block_word::pinned(word)) {
            return region.is_adopted() ? HANARE_STATUS_BUSY : HANARE_STATUS_OK;
        }
        if (is_empty && !may_be_refused) return HANARE_STATUS_OK;
        const BlockState busy = mapped                         ? BlockState::kWithdrawing
                                : state == BlockState::kStaged ? BlockState::kInstalling
                                                               : BlockState::kFilling;
        if (!block.try_enter(word, busy)) continue;
        // As if it were pinned; what is adopted the program may discard at any time.
        if (mapped && !region.is_adopted() &&
            holds.living_cover(region.address_of(index), region.block_bytes)) {
            block.leave(state);
            return HANARE_STATUS_OK;
        }
        if (state == BlockState::kAbsent) {
            if (may_be_refused) engine_.readmit(region.address_of(index), region.block_bytes);
            block.stored_parts = 0;
            give_up_place(region, index);
            block.leave(BlockState::kAbsent, 0, kStored | kDense);
            return HANARE_STATUS_OK;
        }
        Frame& frame = *region.frame_of(block);
        frames_.dequeue(frame);
        if (mapped && !frame.sparse) {
            region.enter();  // for withdraw, which leaves it when it fails
            bool dirty = false;
            const hanare_status status = withdraw(frame, Park::kFree, &dirty);
            if (status != HANARE_STATUS_OK) return status;
            region.leave();
        }
        forget(frame);
        return HANARE_STATUS_OK;
    }
}

// The caller owns a transient state of the block, which is not mapped as a whole.
void Pager::forget(Frame& frame) noexcept {
    Region& region = *frame.region;
    Block& block = region.block(frame.block);
    block.stored_parts = 0;
    give_up_place(region, frame.block);
    if (frame.sparse) {
        region.remove_dirty(region.bytes_of_parts(frame.dirty));
        std::atomic_ref(frame.dirty).store(0, std::memory_order_relaxed);
        give_up_sparse(frame, 0, kStored | kDense);
        return;
    }
    if ((block.load() & kDirty) != 0) {
        region.remove_dirty(region.block_bytes);
    }
    give_up_frame(frame, kStored | kDirty | kDense);
}

}  // namespace hanare::pager
