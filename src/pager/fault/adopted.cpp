// SPDX-License-Identifier: Apache-2.0
//
// Pager, memory that was adopted from a program: blocks that system calls use, that never leave,
// that move to other addresses, or lose some of their parts.  None of it belongs to a stream.
#include <algorithm>
#include <optional>

#include "pager/fault/holds.hpp"
#include "pager/fault/pager.hpp"
#include "pager/fault/parts.hpp"
#include "pager/fault/residency.hpp"
#include "telemetry/raw_line.hpp"

namespace hanare::pager {

using block_word::kDense;
using block_word::kDirty;
using block_word::kSecondChance;
using block_word::kStored;

hanare_status Pager::hold(Region& region, const std::byte* begin, const std::byte* end,
                          bool write) noexcept {
    std::optional<Gate::Pass> pass;
    if (region.is_adopted()) pass.emplace(gate_);
    const uint32_t first = region.index_of(begin);
    const uint32_t last = region.index_of(end - 1);
    if (last > first) request_read_ahead(region, first + 1, last - first, 1);
    for (uint32_t index = first; index <= last; ++index) {
        const uint32_t first_part = index == first ? region.part_of(begin) : 0;
        const uint32_t last_part =
            index == last ? region.part_of(end - 1) : region.parts_per_block - 1;
        const hanare_status status = hold_parts(region, index, first_part, last_part, write);
        if (status != HANARE_STATUS_OK) return status;
    }
    return HANARE_STATUS_OK;
}

// Parts of a sparse block are brought one by one, also where they are many: what others hold of it
// must not leave for a moment, as it would when the block becomes whole.
hanare_status Pager::hold_parts(Region& region, uint32_t index, uint32_t first, uint32_t last,
                                bool write) noexcept {
    const bool few = region.has_shelf() && is_overcommitted() &&
                     (last - first + 1) * kManyShare <= region.parts_per_block;
    Block& block = region.block(index);
    while (!are_present(region, index, first, last, write)) {
        const uint32_t word = block.load();
        if (block_word::transient(word)) {
            wait(block, word);
            continue;
        }
        const bool by_parts =
            block_word::state(word) == BlockState::kSparse || (few && !block_word::resident(word));
        const uint32_t end = by_parts ? last : first;
        for (uint32_t part = first; part <= end; ++part) {
            Fault fault{region, index, part, write, nullptr};
            fault.random = by_parts;
            fault.holds = true;
            bool was_mapped = false;
            const hanare_status status = make_resident(fault, &was_mapped);
            if (status != HANARE_STATUS_OK) return status;
        }
    }
    return HANARE_STATUS_OK;
}

void Pager::pin_for_good(Region& region, uint32_t index) noexcept {
    if (frames_.charge_kept(region.block_bytes)) say_more_is_kept();
    bool first = false;
    const hanare_status status = pin(region, index, true, &first);
    if (status != HANARE_STATUS_OK || !first) frames_.refund_kept(region.block_bytes);
}

void Pager::say_more_is_kept() noexcept {
    if (has_said_more_is_kept_.exchange(true)) return;
    telemetry::RawLine line;
    line.text(
        "hanare: warn: the stacks in far memory alone are more than local memory may be, and "
        "cannot leave: more of it is used");
    line.write_stderr();
}

void Pager::unpin_for_good(Region& region, uint32_t index) noexcept {
    bool last = false;
    if (unpin(region, index, &last) && last) frames_.refund_kept(region.block_bytes);
}

hanare_status Pager::hide(Region& region, uint32_t index) noexcept {
    Block& block = region.block(index);
    for (;;) {
        const uint32_t word = block.load();
        const BlockState state = block_word::state(word);
        if (block_word::transient(word)) {
            wait(block, word);
            continue;
        }
        if (state == BlockState::kAbsent || state == BlockState::kStaged) return HANARE_STATUS_OK;
        if (block_word::pinned(word)) return HANARE_STATUS_BUSY;
        if (state == BlockState::kSparse) {
            bool was_mapped = false;
            const hanare_status status =
                make_resident({region, index, 0, false, nullptr}, &was_mapped);
            if (status != HANARE_STATUS_OK) return status;
            continue;
        }
        if (!block.try_enter(word, BlockState::kWithdrawing)) continue;
        Frame& frame = *region.frame_of(block);
        frames_.dequeue(frame);
        region.enter();  // withdraw() leaves it when it fails
        bool dirty = false;
        const hanare_status status = withdraw(frame, Park::kKeep, &dirty);
        if (status != HANARE_STATUS_OK) return status;
        frames_.enqueue(frame, dirty ? FrameQueue::kProbation : FrameQueue::kInactive);
        block.leave(BlockState::kStaged);
        frames_.note_progress();
        region.leave();
        return HANARE_STATUS_OK;
    }
}

bool Pager::hide_victim(Frame& frame) noexcept {
    Region& region = *frame.region;
    Block& block = region.block(frame.block);
    if (frame.sparse) {
        const bool moved_all = put_on_shelf(frame);
        const bool is_hidden = frame.shelved != 0;
        frames_.enqueue(frame, is_hidden ? FrameQueue::kHidden : FrameQueue::kProbation);
        block.leave(BlockState::kSparse, frame.dirty != 0 ? kDirty : 0);
        frames_.note_progress();
        region.leave();
        return is_hidden || moved_all;
    }
    bool dirty = false;
    if (withdraw(frame, Park::kKeep, &dirty) != HANARE_STATUS_OK) return false;
    frames_.enqueue(frame, FrameQueue::kHidden);
    block.leave(BlockState::kStaged, kSecondChance);
    frames_.note_progress();
    region.leave();
    return true;
}

hanare_status Pager::relocate(Region& region, uint32_t from, uint32_t to) noexcept {
    Block& source = region.block(from);
    Block& target = region.block(to);
    for (;;) {
        if (const hanare_status status = hide(region, from); status != HANARE_STATUS_OK) {
            return status;
        }
        const uint32_t word = source.load();
        const BlockState state = block_word::state(word);
        if (state != BlockState::kAbsent && state != BlockState::kStaged) continue;
        const uint32_t empty = target.load();
        if (block_word::state(empty) != BlockState::kAbsent || (empty & kStored) != 0) {
            return HANARE_STATUS_BUSY;
        }
        const bool has_frame = state == BlockState::kStaged;
        if (!source.try_enter(word, has_frame ? BlockState::kInstalling : BlockState::kFilling)) {
            continue;
        }
        if (!target.try_enter(empty, BlockState::kFilling)) {
            source.leave(state);
            continue;
        }
        std::copy_n(region.checksums_of(from), region.parts_per_block, region.checksums_of(to));
        target.stored_parts = std::exchange(source.stored_parts, 0);
        region.move_place(from, to);
        const uint32_t flags = word & (kStored | kDirty | kSecondChance | kDense);
        if (has_frame) {
            Frame& frame = *region.frame_of(source);
            frames_.dequeue(frame);
            frame.block = to;
            target.frame.store(source.frame.load(std::memory_order_relaxed),
                               std::memory_order_relaxed);
            const bool dirty = (flags & kDirty) != 0;
            frames_.enqueue(frame, dirty ? FrameQueue::kProbation : FrameQueue::kInactive);
        }
        source.leave(BlockState::kAbsent, 0, kStored | kDirty | kSecondChance | kDense);
        target.leave(has_frame ? BlockState::kStaged : BlockState::kAbsent, flags);
        frames_.note_progress();
        return HANARE_STATUS_OK;
    }
}

void Pager::become_child(void (*on_need)(Pager& pager) noexcept) noexcept
    HANARE_NO_THREAD_SAFETY_ANALYSIS {
    keeper_ = nullptr;
    works_ahead_ = false;
    request_first_ = request_count_ = 0;
    for (auto& slot : slots_being_taken_) slot.store(0);
    unnamed_slots_.store(0);
    transfers_.abandon_in_child();
    part_reads_.abandon_in_child();
    on_need_.store(on_need);
}

int Pager::protect_again(Region& region, uint32_t index) noexcept {
    Block& block = region.block(index);
    const BlockState state = block_word::state(block.load());
    if (state == BlockState::kReadOnly) {
        return engine_.forbid_writes(region.address_of(index), region.block_bytes);
    }
    if (state != BlockState::kSparse) return 0;
    const Frame& frame = *region.frame_of(block);
    int error = 0;
    for_each_run(frame.present & ~frame.dirty, [&](uint32_t first, uint32_t parts) {
        if (error != 0) return;
        error = engine_.forbid_writes(region.address_of(index) + first * region.part_bytes,
                                      parts * region.part_bytes);
    });
    return error;
}

uint64_t Pager::discard_parts(Region& region, uint32_t index, uint64_t parts) noexcept {
    Block& block = region.block(index);
    for (;;) {
        const uint32_t word = block.load();
        if (block_word::transient(word)) {
            wait(block, word);
            continue;
        }
        if (block_word::state(word) != BlockState::kAbsent) return parts;
        if ((word & kStored) == 0) return 0;
        if (!block.try_enter(word, BlockState::kFilling)) continue;
        block.stored_parts &= ~parts;
        const bool empty = block.stored_parts == 0;
        if (empty) give_up_place(region, index);
        block.leave(BlockState::kAbsent, 0, empty ? kStored | kDense : 0);
        return 0;
    }
}

}  // namespace hanare::pager
