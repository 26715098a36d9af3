// SPDX-License-Identifier: Apache-2.0
//
// Runs of blocks that come and leave together (frame_run.hpp), where streams write and read.
#include <cerrno>
#include <utility>

#include "base/units.hpp"
#include "pager/fault/frame_table.hpp"
#include "pager/fault/pager.hpp"
#include "pager/fault/zeros.hpp"

namespace hanare::pager {

using block_word::kDirty;
using block_word::kSecondChance;
using block_word::kStored;

namespace {

uint32_t slot_of(const Frame& frame) noexcept {
    const FrameClass& frame_class = *frame.frame_class;
    return static_cast<uint32_t>(static_cast<uint64_t>(frame.memory - frame_class.arena.address()) /
                                 frame_class.block_bytes);
}

// Whose slot is empty, and whose memory nobody uses before he has taken it out of its queue.
bool is_mapped(const Frame& frame) noexcept {
    if (frame.queue != FrameQueue::kProbation && frame.queue != FrameQueue::kProtected &&
        frame.queue != FrameQueue::kDrop) {
        return false;
    }
    if (frame.sparse || frame.region->is_closing()) return false;
    return block_word::resident(frame.region->block(frame.block).load());
}

}  // namespace

// Of the slot with that number, which may be none; nullptr then.
Frame* FrameTable::owner_of_slot(FrameClass& frame_class, uint32_t slot) noexcept {
    if (slot >= frame_class.created) return nullptr;
    return frame_class.frame(frame_class.frame(slot)->slot_owner);
}

void FrameTable::exchange_slots(Frame& a, Frame& b) noexcept {
    FrameClass& frame_class = *a.frame_class;
    std::swap(frame_class.frame(slot_of(a))->slot_owner, frame_class.frame(slot_of(b))->slot_owner);
    std::swap(a.memory, b.memory);
}

bool FrameTable::take_beside(FrameRun& run, bool is_before) noexcept {
    const uint32_t slot = is_before ? slot_of(run.first()) - 1 : slot_of(run.last()) + 1;
    Frame* const other = owner_of_slot(*run.first().frame_class, slot);
    if (other == nullptr) return false;
    // What was written and is still here is given up only where that is all that there is.
    const bool is_full =
        free_bytes_ == 0 && used_bytes_ + metadata_bytes_ + other->bytes > budget_bytes_;
    if (other->queue == FrameQueue::kFree) {
        take_out(*other);
    } else if (other->queue != FrameQueue::kInactive || !is_full || !give_up_staged(*other)) {
        return false;
    }
    given_bytes_ += other->bytes;
    is_before ? run.add_before(*other) : run.add_behind(*other);
    return true;
}

void FrameTable::extend_free(FrameRun& run, uint32_t count) noexcept {
    const sys::LockGuard guard(lock_);
    while (run.count() < count && take_beside(run, true)) {
    }
    while (run.count() < count && take_beside(run, false)) {
    }
}

bool FrameTable::withdraw_beside(FrameRun& run, bool is_before, FrameQueue queue) noexcept {
    Region& region = *run.first().region;
    const uint32_t index = is_before ? run.first().block - 1 : run.last().block + 1;
    if (index >= region.block_count || region.is_closing()) return false;
    Block& block = region.block(index);
    const uint32_t word = block.load();
    const bool is_dirty = (region.block(run.first().block).load() & kDirty) != 0;
    const BlockState wanted = is_dirty ? BlockState::kWritable : BlockState::kReadOnly;
    if (block_word::state(word) != wanted || block_word::pinned(word) ||
        !block.try_enter(word, BlockState::kWithdrawing)) {
        return false;
    }
    Frame& frame = *region.frame_of(block);
    if (frame.queue != queue || is_held(region, index)) {
        block.leave(wanted);
        return false;
    }
    region.enter();
    take_out(frame);
    is_before ? run.add_before(frame) : run.add_behind(frame);
    return true;
}

bool FrameTable::extend_victim(FrameRun& run, FrameQueue queue) noexcept {
    const sys::LockGuard guard(lock_);
    while (!run.is_full() && withdraw_beside(run, true, queue)) {
    }
    while (!run.is_full() && withdraw_beside(run, false, queue)) {
    }
    return run.count() > 1 && join_slots(run);
}

// Gives the frames of a run, none of which has anything in its slot, slots beside each other, of
// which one of them has one already.
bool FrameTable::join_slots(FrameRun& run) noexcept {
    FrameClass& frame_class = *run.first().frame_class;
    for (uint32_t known = 0; known < run.count(); ++known) {
        const uint32_t first = slot_of(run[known]) - known;
        bool can_join = true;
        for (uint32_t i = 0; i < run.count() && can_join; ++i) {
            const Frame* const owner = owner_of_slot(frame_class, first + i);
            can_join = owner != nullptr && (run.has(*owner) || is_mapped(*owner));
        }
        if (!can_join) continue;
        for (uint32_t i = 0; i < run.count(); ++i) {
            Frame& owner = *owner_of_slot(frame_class, first + i);
            if (&owner != &run[i]) exchange_slots(run[i], owner);
        }
        return true;
    }
    return false;
}

// A run whose first frame is still the first of another one, as after writes that failed, goes
// frame by frame.
void FrameTable::free_together(const FrameRun& run) noexcept {
    const sys::LockGuard guard(lock_);
    if (run.first().run_left != 0) return;
    for (uint32_t i = 0; i < run.count(); ++i) run[i].run = &run.first();
    run.first().run_left = run.count();
}

bool FrameTable::leave_run(Frame& frame, bool is_free) noexcept {
    Frame* const first = std::exchange(frame.run, nullptr);
    if (first == nullptr) return false;
    if (is_free) {
        frame.run_next = std::exchange(first->run_freed, &frame);
        nearly_free_bytes_ += frame.bytes;
    }
    if (--first->run_left > 0) return is_free;
    Frame* next = std::exchange(first->run_freed, nullptr);
    while (next != nullptr) {
        Frame& freed = *next;
        next = std::exchange(freed.run_next, nullptr);
        nearly_free_bytes_ -= freed.bytes;
        put(freed, FrameQueue::kFree);
    }
    return is_free;
}

bool Pager::moves_runs(const Region& region) noexcept {
    return !region.is_adopted() && may_work_in_runs(region);
}

// Where streams are looked after, and several blocks take little from others.
bool Pager::may_work_in_runs(const Region& region) noexcept {
    return engine_.moves_runs() && read_ahead_blocks_ > 0 &&
           frames_.replacement() == Replacement::kSecondChance &&
           frames_.frame_budget_bytes() / kRunShare >= region.block_bytes;
}

Pager::Together Pager::withdraw_run(Frame& victim, FrameQueue queue, Park park, bool may_write,
                                    FrameRun& run) noexcept {
    Region& region = *victim.region;
    const uint32_t word = region.block(victim.block).load();
    const bool is_dirty = (word & kDirty) != 0;
    const bool is_mapped = block_word::state(word) == BlockState::kWithdrawing && !victim.sparse;
    // What lies beside anything else may be in use.
    const bool is_behind_stream = queue == FrameQueue::kDrop;
    if (!is_mapped || !is_behind_stream || (is_dirty && !may_write) || !moves_runs(region) ||
        !frames_.extend_victim(run, queue)) {
        return Together::kNo;
    }
    std::byte* const address = region.address_of(run.first().block);
    std::byte* const slots = run.first().memory;
    size_t lost_bytes = 0;
    const int error = is_dirty
                          ? engine_.withdraw_run(address, slots, run.bytes())
                          : engine_.withdraw_clean_run(address, slots, run.bytes(), &lost_bytes);
    if (error != 0 && lost_bytes == 0) return Together::kNo;
    for (uint32_t i = 0; i < run.count(); ++i) {
        if (error != 0) {
            note_still_mapped(run[i], false, i * region.block_bytes < lost_bytes ? EBUSY : EAGAIN);
        } else if (is_dirty) {
            region.block(run[i].block).leave(BlockState::kWriting);
        }
    }
    if (error != 0) return Together::kFailed;
    if (is_dirty && park == Park::kFree) frames_.free_together(run);
    return Together::kYes;
}

// The caller owns kFilling of the block that has faulted, which was never written, as what its
// stream writes next.  `frame` is for one of them.
hanare_status Pager::fill_run(const Fault& fault, Frame& frame) noexcept {
    Region& region = fault.region;
    const uint32_t most = FrameRun::most_of(region.block_bytes);
    const auto step = static_cast<uint32_t>(fault.along);
    uint32_t begun = 1;
    while (begun < most && begin_untouched(region, fault.index + begun * step)) ++begun;
    FrameRun run(frame);
    frames_.extend_free(run, begun);
    const uint32_t blocks = run.count();
    while (begun > blocks) {
        region.block(fault.index + --begun * step).leave(BlockState::kAbsent);
        frames_.note_progress();
    }
    const uint32_t first = fault.along > 0 ? fault.index : fault.index + 1 - blocks;
    for (uint32_t i = 0; i < blocks; ++i) {
        Frame& each = run[i];
        attach_frame(region, first + i, each);
        std::atomic_ref(each.came_along)
            .store(each.block != fault.index, std::memory_order_relaxed);
        note_begun(region.block_bytes);
        count(region.counters.zero_fills);
        if (!each.zeroed) fill_with_zeros(each.memory, region.block_bytes);
        each.zeroed = false;
        region.block(first + i).advance(BlockState::kInstalling);
    }
    if (blocks == 1) return install(region, first, true);
    region.add_dirty(run.bytes());
    if (engine_.install_run(region.address_of(first), run.first().memory, run.bytes()) == 0) {
        for (uint32_t i = 0; i < blocks; ++i) {
            frames_.enqueue(run[i], FrameQueue::kProbation);
            region.block(first + i).leave(BlockState::kWritable, kDirty, kSecondChance);
        }
        frames_.note_progress();
        return HANARE_STATUS_OK;
    }
    region.remove_dirty(run.bytes());
    hanare_status status = HANARE_STATUS_OK;
    for (uint32_t i = 0; i < blocks; ++i) {
        const hanare_status of_one = install(region, first + i, true);
        if (first + i == fault.index) status = of_one;
    }
    return status;
}

// The caller owns kInstalling of the block that has faulted, which has been accepted.
hanare_status Pager::install_staged(const Fault& fault) noexcept {
    Region& region = fault.region;
    const uint32_t word = region.block(fault.index).load();
    FrameRun run(*region.frame_of(region.block(fault.index)));
    const bool may_run = fault.along != 0 && !fault.write && !region.is_adopted() &&
                         (word & (kDirty | kSecondChance)) == 0;
    while (may_run && !run.is_full() && add_staged(fault, run)) {
    }
    std::byte* const first = region.address_of(run.first().block);
    if (run.count() > 1 && engine_.install_clean_run(first, run.first().memory, run.bytes()) == 0) {
        for (uint32_t i = 0; i < run.count(); ++i) {
            frames_.enqueue(run[i], FrameQueue::kProbation);
            region.block(run[i].block).leave(BlockState::kReadOnly);
        }
        frames_.note_progress();
        return HANARE_STATUS_OK;  // behind it the next run begins, with a fault of its own
    }
    hanare_status status = HANARE_STATUS_OK;
    for (uint32_t i = 0; i < run.count(); ++i) {
        const bool has_faulted = run[i].block == fault.index;
        const bool write = has_faulted ? fault.write : fault.along_written;
        const hanare_status of_one = install(region, run[i].block, write);
        if (has_faulted) status = of_one;
    }
    if (status == HANARE_STATUS_OK) bring_along(fault, run.count());
    return status;
}

// The next block of its stream, if that was read ahead into the slot beside those of the run.
bool Pager::add_staged(const Fault& fault, FrameRun& run) noexcept {
    Region& region = fault.region;
    const uint32_t index = fault.index + run.count() * static_cast<uint32_t>(fault.along);
    if (!begin_staged(region, index)) return false;
    Frame& frame = *region.frame_of(region.block(index));
    const bool is_before = fault.along < 0;
    const Frame& edge = is_before ? run.first() : run.last();
    const std::byte* const wanted =
        is_before ? edge.memory - region.block_bytes : edge.memory + region.block_bytes;
    if (frame.memory != wanted) {
        region.block(index).leave(BlockState::kStaged);
        frames_.note_progress();
        return false;
    }
    if (!accept_staged(region, index)) return false;
    std::atomic_ref(frame.came_along).store(true, std::memory_order_relaxed);
    is_before ? run.add_before(frame) : run.add_behind(frame);
    return true;
}

bool Pager::begin_staged(Region& region, uint32_t index) noexcept {
    if (index >= region.block_count || region.is_closing() || is_sample(region, index))
        return false;
    Block& block = region.block(index);
    const uint32_t word = block.load();
    return block_word::state(word) == BlockState::kStaged &&
           (word & (kDirty | kSecondChance)) == 0 && block.try_enter(word, BlockState::kInstalling);
}

// False: it is something else, or somebody else is at it.
bool Pager::begin_untouched(Region& region, uint32_t index) noexcept {
    if (index >= region.block_count || region.is_closing() || is_sample(region, index))
        return false;
    Block& block = region.block(index);
    const uint32_t word = block.load();
    if (block_word::state(word) != BlockState::kAbsent || (word & kStored) != 0) return false;
    if (!block.try_enter(word, BlockState::kFilling)) return false;
    if (block.stored_parts == 0) return true;
    block.leave(BlockState::kAbsent);
    frames_.note_progress();
    return false;
}

}  // namespace hanare::pager
