// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/pager.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/fetch_ahead.hpp"
#include "base/units.hpp"
#include "pager/fault/checksum.hpp"
#include "pager/fault/holds.hpp"
#include "pager/fault/parts.hpp"
#include "pager/fault/zeros.hpp"
#include "sys/clock.hpp"

namespace hanare::pager {

using block_word::kDirty;
using block_word::kSecondChance;
using block_word::kStored;
using UseAhead = FrameTable::UseAhead;

namespace {

// The keeper is told of what was begun so often.
constexpr uint64_t kBegunStepBytes = 1 * kMiB;
constexpr uint64_t kNsPerMs = 1'000'000;
// Without any progress; less where that has been so a moment ago.
constexpr uint64_t kStuckMs = 500;
constexpr uint64_t kStuckAgainMs = 10;
constexpr uint64_t kStuckRecently_ns = 5000 * kNsPerMs;

// In which a block is owned for a moment that changes nothing of what it holds.
BlockState busy_state(BlockState state) {
    switch (state) {
        case BlockState::kStaged: return BlockState::kInstalling;
        case BlockState::kSparse: return BlockState::kExtending;
        case BlockState::kReadOnly:
        case BlockState::kWritable: return BlockState::kUpgrading;
        default: return BlockState::kFilling;
    }
}

}  // namespace

hanare_status Pager::serve(Region& region, const void* address, bool write, AccessHistory& history,
                           bool* was_mapped) noexcept {
    return make_resident(
        {region, region.index_of(address), region.part_of(address), write, &history}, was_mapped);
}

hanare_status Pager::make_resident(Fault fault, bool* was_mapped) noexcept {
    Region& region = fault.region;
    if (region.is_closing()) return HANARE_STATUS_NOT_FOUND;
    transfers_.poll();
    Block& block = region.block(fault.index);
    bool observed = fault.history == nullptr;
    for (;;) {
        const uint32_t word = block.load();
        const BlockState state = block_word::state(word);
        if (state == BlockState::kWritable || (state == BlockState::kReadOnly && !fault.write)) {
            *was_mapped = !fault.waited;
            return HANARE_STATUS_OK;
        }
        if (state == BlockState::kReadOnly) {
            if (block.try_enter(word, BlockState::kUpgrading)) return upgrade(region, fault.index);
            continue;
        }
        if (!observed) {
            observed = true;
            observe(fault);
            if (fault.random && is_whole_better(fault)) fault.random = false;
            continue;  // it may have started to read the block
        }
        if (state == BlockState::kSparse || (state == BlockState::kAbsent && fault.random)) {
            hanare_status status = HANARE_STATUS_OK;
            // Who pins it, or moves it, needs all of it.
            const bool by_parts =
                fault.random || fault.holds ||
                (fault.history != nullptr && (fault.alone || stays_sparse(fault)));
            const Served served = by_parts ? serve_part(fault, word, &status, was_mapped)
                                           : complete(fault, word, &status);
            if (served == Served::kDone) return status;
            continue;
        }
        if (state == BlockState::kAbsent) {
            if (!block.try_enter(word, BlockState::kFilling)) continue;
            count_fault(fault);
            return fill(fault);
        }
        if (state == BlockState::kStaged) {
            if (!block.try_enter(word, BlockState::kInstalling)) continue;
            if (!accept_staged(region, fault.index)) continue;
            count_fault(fault);
            if (!fault.waited) count(region.counters.staged_hits);
            if (Frame* const sparse = split_if_useful(fault)) {
                return take_from_shelf(fault, *sparse);
            }
            return install_staged(fault);
        }
        if (region.is_closing()) return HANARE_STATUS_NOT_FOUND;
        if (!fault.waited) count(region.counters.wait_faults);
        fault.waited = true;
        const uint64_t stalled_ns = wait(block, word);
        if (stalled_ns > 0) read_ahead_depth_.note(0, stalled_ns, sys::now_ns());
        if (may_be_over(fault, state)) {
            *was_mapped = false;
            return HANARE_STATUS_OK;
        }
    }
}

// Whether the access that faulted may have succeeded while its fault waited for the end of `state`:
// a thread that sleeps in the kernel may wake up too early and fault again, and be served by what
// the wait was for.  To serve the first fault after that would make a block dirty that nobody
// writes.  A thread that still needs the block faults once more.
bool Pager::may_be_over(const Fault& fault, BlockState state) const noexcept {
    return fault_service_ != nullptr && fault.history != nullptr && fault.write &&
           state != BlockState::kReading;
}

uint64_t Pager::wait(Block& block, uint32_t seen) noexcept {
    const BlockState state = block_word::state(seen);
    if (state != BlockState::kReading && state != BlockState::kStoring) {
        block.wait(seen);
        return 0;
    }
    const uint64_t began_ns = sys::now_ns();
    transfers_.wait_while([&] { return block_word::state(block.load()) == state; });
    return state == BlockState::kReading ? sys::now_ns() - began_ns : 0;
}

void Pager::count_fault(const Fault& fault) noexcept {
    RegionCounters& counters = fault.region.counters;
    count(fault.write ? counters.write_faults : counters.read_faults);
}

hanare_status Pager::engine_failed(int os_errno) noexcept {
    engine_errno.store(os_errno, std::memory_order_relaxed);
    switch (os_errno) {
        case EAGAIN:
        case ENOMEM: return HANARE_STATUS_NO_MEMORY;
        case EBUSY: return HANARE_STATUS_BUSY;
        default: return HANARE_STATUS_INTERNAL;
    }
}

// The caller owns kFilling.
hanare_status Pager::fill(const Fault& fault) noexcept {
    Region& region = fault.region;
    Block& block = region.block(fault.index);
    Room room;
    hanare_status status = obtain_room(region, 0, &room);
    if (status != HANARE_STATUS_OK) {
        block.leave(BlockState::kAbsent);
        return status;
    }
    const bool is_untouched = block.stored_parts == 0;
    if (is_untouched && fault.along_written && moves_runs(region)) {
        return fill_run(fault, *room.frame);
    }
    attach_frame(region, fault.index, *room.frame);
    // A pin; of the program's faults observe() tells which belong to no stream.
    if (fault.history == nullptr) read_ahead_depth_.note_other_use();
    if (fault.write && is_untouched) note_begun(region.block_bytes);
    auto content = Content::kInSlot;
    if (fault.write && is_untouched && engine_.installs_zeros()) {
        count(region.counters.zero_fills);
        room.frame->zeroed = false;
        content = Content::kZeros;
    } else {
        status = read_block(region, fault.index, *room.frame, 0);
    }
    if (status != HANARE_STATUS_OK) {
        give_up_frame(*room.frame);
        return status;
    }
    // From here on the program can write to it, so a flush has to wait.
    block.advance(BlockState::kInstalling);
    Frame* const sparse = content == Content::kInSlot ? split_if_useful(fault) : nullptr;
    if (sparse != nullptr) return take_from_shelf(fault, *sparse);
    return install(region, fault.index, fault.write, content);
}

void Pager::attach_frame(Region& region, uint32_t index, Frame& frame) noexcept {
    frame.region = &region;
    frame.block = index;
    frame.unverified = false;
    std::atomic_ref(frame.came_along).store(false, std::memory_order_relaxed);
    region.block(index).frame.store(frame.index, std::memory_order_relaxed);
    region.add_resident(region.block_bytes);
}

// The owner leaves its transient state for an absent block; the frame is free again.
void Pager::give_up_frame(Frame& frame, uint32_t flags) noexcept {
    Region& region = *frame.region;
    region.remove_resident(region.block_bytes);
    region.block(frame.block).leave(BlockState::kAbsent, 0, kSecondChance | flags);
    frames_.release(frame, false);
}

// Brings what the store holds of the block into the frame, and zeros for the rest, except where
// the caller will put content of its own (`overlaid`).
hanare_status Pager::read_block(Region& region, uint32_t index, Frame& frame,
                                uint64_t overlaid) noexcept {
    const uint64_t wanted = region.block(index).stored_parts & ~overlaid;
    if (wanted == 0) {
        count(region.counters.zero_fills);
        if (!frame.zeroed) fill_with_zeros(frame.memory, region.block_bytes);
        frame.zeroed = false;
        return HANARE_STATUS_OK;
    }
    frame.zeroed = false;
    note_read();
    if (region.has_shelf()) frames_.note_missed();
    const hanare_status status =
        store_.read(region.offset_of(index), frame.memory, region.block_bytes);
    if (status != HANARE_STATUS_OK) {
        count(region.counters.store_errors);
        return status;
    }
    count(region.counters.demand_reads);
    count(region.counters.read_bytes, region.block_bytes);
    return finish_read(region, index, frame, overlaid);
}

// The frame holds what came from the store.
hanare_status Pager::finish_read(Region& region, uint32_t index, const Frame& frame,
                                 uint64_t overlaid) noexcept {
    const uint64_t stored = region.block(index).stored_parts;
    for_each_run(region.all_parts() & ~stored & ~overlaid, [&](uint32_t first, uint32_t count) {
        fill_with_zeros(frame.memory + first * region.part_bytes, count * region.part_bytes);
    });
    return verify(region, index, frame.memory, stored & ~overlaid);
}

// `memory`: of the block from its part `first` on.
hanare_status Pager::verify(Region& region, uint32_t index, const std::byte* memory, uint64_t parts,
                            uint32_t first) noexcept {
    if (!has_checksums_) return HANARE_STATUS_OK;
    const uint32_t* expected = region.checksums_of(index);
    for (; parts != 0; parts &= parts - 1) {
        const auto part = static_cast<uint32_t>(std::countr_zero(parts));
        const uint64_t start = part * region.part_bytes;
        const std::byte* const here = memory + start - first * region.part_bytes;
        if ((parts >> part & 2) != 0) fetch_ahead(here + region.part_bytes, region.part_bytes);
        if (part_checksum(here, region.part_bytes, region.offset_of(index) + start) !=
            expected[part]) {
            count(region.counters.checksum_errors);
            return HANARE_STATUS_CORRUPT;
        }
    }
    return HANARE_STATUS_OK;
}

// The caller owns kInstalling.  What was read ahead is looked at only now, since it then is in the
// cache for the program.  False: it is corrupt, and absent again; whoever needs it reads it once
// more and reports.
bool Pager::accept_staged(Region& region, uint32_t index) noexcept {
    Frame& frame = *region.frame_of(region.block(index));
    frames_.dequeue(frame);
    if (!frame.unverified || finish_read(region, index, frame, 0) == HANARE_STATUS_OK) {
        frame.unverified = false;
        return true;
    }
    give_up_frame(frame);
    return false;
}

// The caller owns kInstalling.
hanare_status Pager::install(Region& region, uint32_t index, bool write, Content content) noexcept {
    Block& block = region.block(index);
    Frame& frame = *region.frame_of(block);
    const uint32_t word = block.load();
    const bool was_dirty = (word & kDirty) != 0;
    bool writable = write || was_dirty;
    bool counted = was_dirty;
    const auto count_dirty = [&] {
        if (!std::exchange(counted, true)) region.add_dirty(region.block_bytes);
    };
    std::byte* address = region.address_of(index);
    bool tried = false;
    const int error = retry_after_evictions([&] {
        // The last try may have mapped pages for a moment, in which they were written to.
        if (std::exchange(tried, true)) writable = true;
        if (writable) {
            count_dirty();
            const bool zeros = std::exchange(content, Content::kInSlot) == Content::kZeros;
            return zeros ? engine_.install_zeros(address, frame.memory, region.block_bytes,
                                                 place_of(region, index))
                         : engine_.install_writable(address, frame.memory, region.block_bytes,
                                                    place_of(region, index));
        }
        return engine_.install_read_only(address, frame.memory, region.block_bytes, &writable);
    });
    if (error != 0) {
        count_dirty();
        frames_.enqueue(frame, FrameQueue::kProbation);
        block.leave(BlockState::kStaged, kDirty);
        frames_.note_progress();
        return engine_failed(error);
    }
    if (engine_.copies()) frames_.empty_slot(frame);
    if (writable) count_dirty();
    frames_.enqueue(frame,
                    (word & kSecondChance) != 0 ? FrameQueue::kProtected : FrameQueue::kProbation);
    block.leave(writable ? BlockState::kWritable : BlockState::kReadOnly, writable ? kDirty : 0,
                kSecondChance);
    frames_.note_progress();
    return HANARE_STATUS_OK;
}

// The caller owns kUpgrading.
hanare_status Pager::upgrade(Region& region, uint32_t index) noexcept {
    Block& block = region.block(index);
    count(region.counters.upgrade_faults);
    region.add_dirty(region.block_bytes);
    const int error = retry_after_evictions(
        [&] { return engine_.allow_writes(region.address_of(index), region.block_bytes); });
    if (error != 0) {
        region.remove_dirty(region.block_bytes);
        block.leave(BlockState::kReadOnly);
        frames_.note_progress();
        return engine_failed(error);
    }
    block.leave(BlockState::kWritable, kDirty);
    frames_.note_progress();
    return HANARE_STATUS_OK;
}

bool Pager::map_again(Region& region, const void* address) noexcept {
    const uint32_t index = region.index_of(address);
    Block& block = region.block(index);
    const uint32_t word = block.load();
    if (!block_word::resident(word) || !block.try_enter(word, BlockState::kUpgrading)) return true;
    const bool was_writable = block_word::state(word) == BlockState::kWritable;
    bool writable = was_writable;
    const int error = engine_.map_again(region.address_of(index), region.block_bytes, &writable);
    if (writable && !was_writable) region.add_dirty(region.block_bytes);
    block.leave(writable ? BlockState::kWritable : BlockState::kReadOnly, writable ? kDirty : 0);
    frames_.note_progress();
    if (error == 0) return true;
    engine_failed(error);
    return false;
}

// A frame with pages, or nullptr.
Frame* Pager::take_frame(FrameClass& frame_class, FrameTable::UseAhead use_ahead, bool may_create,
                         hanare_status* failure) noexcept {
    Frame* frame = frames_.acquire(frame_class, use_ahead, may_create);
    if (frame == nullptr || !frame->bare) return frame;
    const bool leads_chunk = frame->chunk_frames > 0;
    const uint64_t frames = leads_chunk ? frame->chunk_frames : 1;
    const int error = engine_.populate(frame->memory, frames * frame_class.block_bytes);
    if (leads_chunk) {
        frames_.chunk_populated(*frame, error == 0, true);
        if (keeper_ != nullptr) keeper_->kick();  // its read-ahead may wait for the others
    }
    if (error == 0) {
        frame->bare = false;
        frame->zeroed = true;
        return frame;
    }
    *failure = engine_failed(error);
    frames_.release(*frame, true);
    return nullptr;
}

Pager::Room Pager::take_room(Region& region, uint64_t bytes, UseAhead use_ahead, bool may_create,
                             hanare_status* failure) noexcept {
    if (bytes == 0) {
        return {take_frame(*region.frame_class, use_ahead, may_create, failure), 0};
    }
    return {nullptr, frames_.reserve(bytes, use_ahead) ? bytes : 0};
}

// All that is there may be held, by calls that wait for each other, or sleep until somebody comes
// on who waits here.
void Pager::wait_or_exceed(uint32_t seen, uint64_t bytes, uint64_t* stuck_since_ns) noexcept {
    const uint64_t began_ns = sys::now_ns();
    const bool has_been_so = began_ns - exceeded_ns_.load() < kStuckRecently_ns;
    const uint64_t patience_ms = has_been_so ? kStuckAgainMs : kStuckMs;
    frames_.wait_progress(seen, static_cast<int>(patience_ms));
    if (frames_.progress() != seen) {
        *stuck_since_ns = 0;
        return;
    }
    if (*stuck_since_ns == 0) *stuck_since_ns = began_ns;
    const uint64_t now_ns = sys::now_ns();
    if (now_ns - *stuck_since_ns < patience_ms * kNsPerMs) return;
    exceeded_ns_.store(now_ns);
    holds.release_dead();
    frames_.exceed_budget(bytes);
}

hanare_status Pager::obtain_room(Region& region, uint64_t bytes, Room* room) noexcept {
    if (const auto function = on_need_.load(std::memory_order_relaxed)) function(*this);
    hanare_status failure = HANARE_STATUS_OK;
    uint32_t failed_before = failed_writes_.load(std::memory_order_acquire);
    // Once the kernel has refused memory, what is there has to do.
    bool may_create = true;
    // The device has as much to write as is good for it, and ends some of that before it would end
    // a write of this thread's; but others may take what it brings, and a thread that serves the
    // kernel's faults may be whom a write waits for.
    bool may_wait_for_keeper = keeper_ != nullptr && fault_service_ == nullptr;
    uint64_t stuck_since_ns = 0;
    for (uint32_t failures = 0; failures < kFailuresMax;) {
        const uint32_t seen = frames_.progress();
        const uint32_t chunks_ended = frames_.chunks_ended();
        // Frames of a closing region come free only when everybody has left it.
        if (region.is_closing()) return HANARE_STATUS_NOT_FOUND;
        failure = HANARE_STATUS_OK;
        // Where the store refuses writes, what was read ahead is all that can be had.
        if (failures > 0) transfers_.poll();
        const UseAhead use_ahead = failures > 0 ? UseAhead::kAlways : UseAhead::kBeyondShare;
        *room = take_room(region, bytes, use_ahead, may_create, &failure);
        if (room->found()) {
            kick_if_low();
            return HANARE_STATUS_OK;
        }
        if (failure != HANARE_STATUS_OK) {
            may_create = false;
            ++failures;
            continue;
        }
        if (const uint32_t failed = failed_writes_.load(std::memory_order_acquire);
            failed != failed_before) {
            failed_before = failed;
            failure = write_failure_.load(std::memory_order_relaxed);
            ++failures;
            continue;
        }
        // What fits in the budget is not evicted because its frames are on their way, or have come
        // a moment too late.
        if (may_create && frames_.chunks_begun() != chunks_ended) {
            frames_.wait_progress(seen);
            continue;
        }
        if (failures == 0 && may_wait_for_keeper && keeper_->is_cleaning_at_most()) {
            frames_.wait_progress(seen);
            may_wait_for_keeper = false;
            continue;
        }
        // Enough is on its way already.
        if (failures == 0 && storing_bytes() >= (bytes != 0 ? bytes : region.block_bytes)) {
            transfers_.wait_while(
                [&] { return frames_.progress() == seen && storing_bytes() > 0; });
            continue;
        }
        // Where the store refuses writes, blocks that need none can still go.
        const Eviction eviction = evict_inline(failures > 0, failures == 0, &failure);
        if (eviction == Eviction::kDone || eviction == Eviction::kStarted) continue;
        if (eviction == Eviction::kFailed) {
            ++failures;
            continue;
        }
        *room = take_room(region, bytes, UseAhead::kAlways, may_create, &failure);
        if (room->found()) return HANARE_STATUS_OK;
        if (!may_create) {
            may_create = true;
            ++failures;
            continue;
        }
        if (keeper_ != nullptr) keeper_->kick();
        // What faults have started brings frames, if somebody completes it.
        if (transfers_.in_flight()) {
            transfers_.wait_while(
                [&] { return frames_.progress() == seen && transfers_.in_flight(); });
        } else if (region.is_adopted()) {
            wait_or_exceed(seen, bytes != 0 ? bytes : region.block_bytes, &stuck_since_ns);
        } else {
            frames_.wait_progress(seen);
        }
    }
    return failure;
}

void Pager::kick_if_low() noexcept {
    if (keeper_ == nullptr || !works_ahead_ || keeper_->is_cleaning_at_most()) return;
    const uint64_t reserved_bytes = virtual_bytes.load(std::memory_order_relaxed);
    if (frames_.is_low(reserved_bytes, may_evict_ahead(), populates_ahead())) keeper_->kick();
}

void Pager::note_begun(uint64_t bytes) noexcept {
    const uint64_t before = begun_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    if (before / kBegunStepBytes == (before + bytes) / kBegunStepBytes) return;
    if (keeper_ != nullptr && evicts_ahead() && !keeper_->is_cleaning_at_most()) keeper_->kick();
}

bool Pager::populate_ahead() noexcept {
    if (!populates_ahead()) return false;
    Frame* const leader = frames_.next_chunk_ahead();
    if (leader == nullptr) return false;
    const int error = engine_.populate_ahead(leader->memory, leader->chunk_frames * leader->bytes);
    frames_.chunk_populated(*leader, error == 0, false);
    return error == 0;
}

bool Pager::is_missed_by_writer(Region& region, const std::byte* page) noexcept {
    const Block& block = region.block(region.index_of(page));
    const uint32_t word = block.load();
    if (block_word::state(word) != BlockState::kWriting) return false;
    Frame& frame = *region.frame_of(block);
    if (!frame.sparse) return false;
    // The owner does not change it in this state.
    const uint64_t present = std::atomic_ref(frame.present).load(std::memory_order_acquire);
    return block.load() == word && (present >> region.part_of(page) & 1) != 0;
}

int Pager::refuse(Region& region, std::byte* page) noexcept {
    Block& block = region.block(region.index_of(page));
    const uint32_t word = block.load();
    const BlockState state = block_word::state(word);
    if (block_word::transient(word) || !block.try_enter(word, busy_state(state))) return EBUSY;
    const int error = engine_.refuse(page, kOsPageBytes, state == BlockState::kAbsent);
    block.leave(state);
    frames_.note_progress();
    return error;
}

int Pager::readmit(Region& region, const std::byte* page) noexcept {
    const uint32_t index = region.index_of(page);
    const uint32_t part = region.part_of(page);
    Block& block = region.block(index);
    const uint32_t word = block.load();
    const BlockState state = block_word::state(word);
    if (block_word::resident(word)) return 0;
    if (block_word::transient(word) || !block.try_enter(word, busy_state(state))) return EBUSY;
    int error = 0;
    if (state != BlockState::kSparse || (region.frame_of(block)->present >> part & 1) == 0) {
        error =
            engine_.readmit(region.address_of(index) + part * region.part_bytes, region.part_bytes);
    }
    block.leave(state);
    frames_.note_progress();
    return error;
}

hanare_status Pager::pin(Region& region, uint32_t index, bool write, bool* first) noexcept {
    Block& block = region.block(index);
    for (;;) {
        bool was_mapped = false;
        const hanare_status status = make_resident({region, index, 0, write, nullptr}, &was_mapped);
        if (status != HANARE_STATUS_OK) return status;
        uint32_t word = block.load();
        const bool suitable =
            write ? block_word::state(word) == BlockState::kWritable : block_word::resident(word);
        if (!suitable) continue;
        if ((word & block_word::kPinMask) == block_word::kPinMask) return HANARE_STATUS_LIMIT;
        if (!block.word.compare_exchange_strong(word, word + block_word::kPinUnit,
                                                std::memory_order_acq_rel)) {
            continue;
        }
        *first = !block_word::pinned(word);
        if (*first) {
            region.pinned_blocks.fetch_add(1, std::memory_order_relaxed);
            frames_.dequeue(*region.frame_of(block));
        }
        return HANARE_STATUS_OK;
    }
}

bool Pager::unpin(Region& region, uint32_t index, bool* last) noexcept {
    Block& block = region.block(index);
    uint32_t before = block.load();
    do {
        if (!block_word::pinned(before)) return false;
    } while (!block.word.compare_exchange_weak(before, before - block_word::kPinUnit,
                                               std::memory_order_acq_rel));
    *last = !block_word::pinned(before - block_word::kPinUnit);
    if (!*last) return true;
    region.pinned_blocks.fetch_sub(1, std::memory_order_relaxed);
    frames_.requeue_unpinned(region, index);
    frames_.note_progress();
    return true;
}

}  // namespace hanare::pager
