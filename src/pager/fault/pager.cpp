// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/pager.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/units.hpp"
#include "pager/fault/checksum.hpp"

namespace hanare::pager {

using block_word::kDirty;
using block_word::kSecondChance;
using block_word::kStored;
using UseAhead = FrameTable::UseAhead;

namespace {

uint32_t flag_of(Park park) { return park == Park::kSecondChance ? kSecondChance : 0; }

}  // namespace

hanare_status Pager::serve(Region& region, uint32_t index, bool write, bool* was_mapped) noexcept {
    return make_resident(region, index, write, true, was_mapped);
}

hanare_status Pager::make_resident(Region& region, uint32_t index, bool write, bool by_program,
                                   bool* was_mapped) noexcept {
    if (region.is_closing()) return HANARE_STATUS_NOT_FOUND;
    Block& block = region.block(index);
    bool observed = !by_program;
    bool waited = false;
    for (;;) {
        const uint32_t word = block.load();
        const BlockState state = block_word::state(word);
        if (state == BlockState::kWritable || (state == BlockState::kReadOnly && !write)) {
            *was_mapped = !waited;
            return HANARE_STATUS_OK;
        }
        if (state == BlockState::kReadOnly) {
            if (block.try_enter(word, BlockState::kUpgrading)) return upgrade(region, index);
            continue;
        }
        if (!observed) {
            observed = true;
            observe(region, index);
        }
        if (state == BlockState::kAbsent) {
            if (!block.try_enter(word, BlockState::kFilling)) continue;
            count(write ? region.counters.write_faults : region.counters.read_faults);
            return fill(region, index, write);
        }
        if (state == BlockState::kStaged) {
            if (!block.try_enter(word, BlockState::kInstalling)) continue;
            count(write ? region.counters.write_faults : region.counters.read_faults);
            if (!waited) count(region.counters.staged_hits);
            frames_.dequeue(*region.frame_of(block));
            return install(region, index, write);
        }
        if (region.is_closing()) return HANARE_STATUS_NOT_FOUND;
        if (!waited) count(region.counters.wait_faults);
        waited = true;
        block.wait(word);
    }
}

hanare_status Pager::engine_failed(int os_errno) noexcept {
    engine_errno.store(os_errno, std::memory_order_relaxed);
    switch (os_errno) {
        case ENOMEM: return HANARE_STATUS_NO_MEMORY;
        case EBUSY: return HANARE_STATUS_BUSY;
        default: return HANARE_STATUS_INTERNAL;
    }
}

// The kernel may refuse one mapping more (vm.max_map_count); every mapped block less leaves room.
template <typename Step>
int Pager::retry_after_evictions(Step step) noexcept {
    int error = step();
    for (uint32_t tries = 0; error == ENOMEM && tries < kFailuresMax; ++tries) {
        hanare_status ignored = HANARE_STATUS_OK;
        if (evict_inline(false, &ignored) == Eviction::kNoVictim) break;
        error = step();
    }
    return error;
}

void Pager::observe(Region& region, uint32_t index) noexcept {
    const hanare_advice advice = region.advice.load(std::memory_order_relaxed);
    if (advice == HANARE_ADVICE_RANDOM) return;
    const StreamTable::Advice found =
        region.streams.observe(index, region.blocks(), region.block_count, read_ahead_blocks_,
                               advice == HANARE_ADVICE_SEQUENTIAL);
    if (found.count > 0) request_read_ahead(region, found.first, found.count, found.step);
    if (found.behind == StreamTable::kNone) return;
    const Block& behind = region.block(found.behind);
    if (block_word::resident(behind.load())) {
        frames_.mark_drop(*region.frame_of(behind), region, found.behind);
    }
}

// The caller owns kFilling.
hanare_status Pager::fill(Region& region, uint32_t index, bool write) noexcept {
    Block& block = region.block(index);
    hanare_status status = HANARE_STATUS_OK;
    Frame* frame = obtain_frame(region, &status);
    if (frame == nullptr) {
        block.leave(BlockState::kAbsent);
        return status;
    }
    status = HANARE_STATUS_OK;  // evictions may have failed before one succeeded
    attach_frame(region, index, *frame);
    if ((block.load() & kStored) != 0) {
        status = read_block(region, index, *frame);
    } else {
        count(region.counters.zero_fills);
        if (!frame->zeroed) std::memset(frame->memory, 0, region.block_bytes);
        frame->zeroed = false;
    }
    if (status != HANARE_STATUS_OK) {
        give_up_frame(*frame);
        return status;
    }
    return install(region, index, write);
}

void Pager::attach_frame(Region& region, uint32_t index, Frame& frame) noexcept {
    frame.region = &region;
    frame.block = index;
    region.block(index).frame.store(frame.index, std::memory_order_relaxed);
    region.resident_blocks.fetch_add(1, std::memory_order_relaxed);
}

// The owner leaves its transient state for an absent block; the frame is free again.
void Pager::give_up_frame(Frame& frame) noexcept {
    Region& region = *frame.region;
    region.resident_blocks.fetch_sub(1, std::memory_order_relaxed);
    region.block(frame.block).leave(BlockState::kAbsent, 0, kSecondChance);
    frames_.release(frame, false);
}

hanare_status Pager::read_block(Region& region, uint32_t index, Frame& frame) noexcept {
    frame.zeroed = false;
    const hanare_status status =
        store_.read(region.offset_of(index), frame.memory, region.block_bytes);
    if (status != HANARE_STATUS_OK) {
        count(region.counters.store_errors);
        return status;
    }
    count(region.counters.demand_reads);
    count(region.counters.read_bytes, region.block_bytes);
    return verify(region, frame);
}

hanare_status Pager::verify(Region& region, Frame& frame) noexcept {
    const uint64_t found =
        block_checksum(frame.memory, region.block_bytes, region.offset_of(frame.block));
    if (found == region.block(frame.block).checksum) return HANARE_STATUS_OK;
    count(region.counters.checksum_errors);
    return HANARE_STATUS_CORRUPT;
}

// The caller owns kFilling or kInstalling and the frame holds the content.
hanare_status Pager::install(Region& region, uint32_t index, bool write) noexcept {
    Block& block = region.block(index);
    Frame& frame = *region.frame_of(block);
    const uint32_t word = block.load();
    const bool was_dirty = (word & kDirty) != 0;
    bool writable = write || was_dirty;
    std::byte* address = region.address_of(index);
    const int error = retry_after_evictions([&] {
        if (writable) return engine_.install_writable(address, frame.memory, region.block_bytes);
        return engine_.install_read_only(address, frame.memory, region.block_bytes, &writable);
    });
    if (error != 0) {
        // Parts of it may have been mapped writable for a moment.
        if (!was_dirty) region.dirty_blocks.fetch_add(1, std::memory_order_relaxed);
        frames_.enqueue(frame, FrameQueue::kProbation);
        block.leave(BlockState::kStaged, kDirty);
        frames_.note_progress();
        return engine_failed(error);
    }
    if (writable && !was_dirty) region.dirty_blocks.fetch_add(1, std::memory_order_relaxed);
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
    const int error = retry_after_evictions(
        [&] { return engine_.allow_writes(region.address_of(index), region.block_bytes); });
    if (error != 0) {
        block.leave(BlockState::kReadOnly);
        frames_.note_progress();
        return engine_failed(error);
    }
    count(region.counters.upgrade_faults);
    region.dirty_blocks.fetch_add(1, std::memory_order_relaxed);
    block.leave(BlockState::kWritable, kDirty);
    frames_.note_progress();
    return HANARE_STATUS_OK;
}

// A frame with pages, or nullptr.
Frame* Pager::take_frame(FrameClass& frame_class, FrameTable::UseAhead use_ahead, bool may_create,
                         hanare_status* failure) noexcept {
    Frame* frame = frames_.acquire(frame_class, use_ahead, may_create);
    if (frame == nullptr || !frame->bare) return frame;
    const bool leads_chunk = frame->chunk_frames > 0;
    const uint64_t frames = leads_chunk ? frame->chunk_frames : 1;
    const int error = engine_.populate(frame->memory, frames * frame_class.block_bytes);
    if (leads_chunk) frames_.chunk_populated(*frame, error == 0);
    if (error == 0) {
        frame->bare = false;
        frame->zeroed = true;
        return frame;
    }
    *failure = engine_failed(error);
    frames_.release(*frame, true);
    return nullptr;
}

Frame* Pager::obtain_frame(Region& region, hanare_status* failure) noexcept {
    FrameClass& frame_class = *region.frame_class;
    // Once the kernel has refused memory, what is there has to do.
    bool may_create = true;
    for (uint32_t failures = 0; failures < kFailuresMax;) {
        const uint32_t seen = frames_.progress();
        // Frames of a closing region come free only when everybody has left it.
        if (region.is_closing()) {
            *failure = HANARE_STATUS_NOT_FOUND;
            return nullptr;
        }
        *failure = HANARE_STATUS_OK;
        if (Frame* frame = take_frame(frame_class, UseAhead::kBeyondShare, may_create, failure)) {
            kick_if_low();
            return frame;
        }
        if (*failure != HANARE_STATUS_OK) {
            may_create = false;
            ++failures;
            continue;
        }
        // Where the store refuses writes, blocks that need none can still go.
        const Eviction eviction = evict_inline(failures > 0, failure);
        if (eviction == Eviction::kDone) continue;
        if (eviction == Eviction::kFailed) {
            ++failures;
            continue;
        }
        if (Frame* frame = take_frame(frame_class, UseAhead::kAlways, may_create, failure)) {
            return frame;
        }
        if (!may_create) {
            may_create = true;
            ++failures;
            continue;
        }
        if (keeper_ != nullptr) keeper_->kick();
        frames_.wait_progress(seen);
    }
    return nullptr;
}

void Pager::kick_if_low() noexcept {
    if (keeper_ != nullptr && is_overcommitted() && frames_.available_bytes() < low_water_bytes()) {
        keeper_->kick();
    }
}

uint64_t Pager::low_water_bytes() noexcept {
    return std::min<uint64_t>(frames_.frame_budget_bytes() / 16, 8 * kMiB);
}

Pager::Eviction Pager::evict_inline(bool prefer_clean, hanare_status* failure) noexcept {
    FrameQueue queue = FrameQueue::kNone;
    Frame* frame = frames_.select_victim(queue, prefer_clean);
    if (frame == nullptr) return Eviction::kNoVictim;
    Region& region = *frame->region;
    count(region.counters.evictions_inline);
    bool dirty = false;
    hanare_status status = withdraw(*frame, &dirty);
    if (status != HANARE_STATUS_OK) {
        *failure = status;
        return Eviction::kFailed;
    }
    if (!dirty) {
        finish_clean(*frame, Park::kFree);
        return Eviction::kDone;
    }
    prepare_write(*frame);
    status = store_.write(frame->io.offset, frame->memory, frame->io.bytes);
    finish_write(*frame, status, Park::kFree);
    if (status == HANARE_STATUS_OK) return Eviction::kDone;
    *failure = status;
    return Eviction::kFailed;
}

bool Pager::evict_one() noexcept {
    hanare_status failure = HANARE_STATUS_OK;
    return evict_inline(false, &failure) == Eviction::kDone;
}

hanare_status Pager::withdraw(Frame& frame, bool* dirty) noexcept {
    Region& region = *frame.region;
    Block& block = region.block(frame.block);
    const uint32_t word = block.load();
    *dirty = (word & kDirty) != 0;
    if (block_word::state(word) == BlockState::kWriting) return HANARE_STATUS_OK;
    std::byte* address = region.address_of(frame.block);
    const int error = engine_.withdraw(address, frame.memory, region.block_bytes);
    if (error != 0) {
        // What was moved and moved back has lost its write protection.
        // Where that fails, too, the program has unmapped them; its next access will tell.
        engine_.allow_writes(address, region.block_bytes);
        if (!*dirty) region.dirty_blocks.fetch_add(1, std::memory_order_relaxed);
        frames_.enqueue(frame, FrameQueue::kProbation);
        block.leave(BlockState::kWritable, kDirty);
        frames_.note_progress();
        region.leave();
        return engine_failed(error);
    }
    if (*dirty) block.leave(BlockState::kWriting);
    return HANARE_STATUS_OK;
}

void Pager::prepare_write(Frame& frame) noexcept {
    const Region& region = *frame.region;
    frame.io.kind = store::IoKind::kWrite;
    frame.io.offset = region.offset_of(frame.block);
    frame.io.memory = frame.memory;
    frame.io.bytes = region.block_bytes;
    frame.checksum = block_checksum(frame.memory, region.block_bytes, frame.io.offset);
}

void Pager::finish_clean(Frame& frame, Park park) noexcept {
    Region& region = *frame.region;
    if (park == Park::kFree) {
        count(region.counters.clean_drops);
        give_up_frame(frame);
    } else {
        frames_.enqueue(frame, FrameQueue::kInactive);
        region.block(frame.block).leave(BlockState::kStaged, flag_of(park));
        frames_.note_progress();
    }
    region.leave();
}

void Pager::finish_write(Frame& frame, hanare_status status, Park park) noexcept {
    Region& region = *frame.region;
    Block& block = region.block(frame.block);
    if (status != HANARE_STATUS_OK) {
        count(region.counters.store_errors);
        frames_.enqueue(frame, FrameQueue::kProbation);
        block.leave(BlockState::kStaged);
        frames_.note_progress();
        region.leave();
        return;
    }
    count(region.counters.write_backs);
    count(region.counters.written_bytes, region.block_bytes);
    region.dirty_blocks.fetch_sub(1, std::memory_order_relaxed);
    block.checksum = frame.checksum;
    if (park == Park::kFree) {
        region.resident_blocks.fetch_sub(1, std::memory_order_relaxed);
        block.leave(BlockState::kAbsent, kStored, kDirty | kSecondChance);
        frames_.release(frame, false);
    } else {
        frames_.enqueue(frame, FrameQueue::kInactive);
        block.leave(BlockState::kStaged, kStored | flag_of(park), kDirty);
        frames_.note_progress();
    }
    region.leave();
}

Pager::FillStart Pager::start_fill(Region& region, uint32_t index, Frame** frame) noexcept {
    Block& block = region.block(index);
    const uint32_t word = block.load();
    if (block_word::state(word) != BlockState::kAbsent || (word & kStored) == 0) {
        return FillStart::kNothingToDo;
    }
    hanare_status failure = HANARE_STATUS_OK;
    // Read-ahead does not live on its own earlier work, which is needed sooner.
    Frame* found = take_frame(*region.frame_class, UseAhead::kNever, true, &failure);
    if (found == nullptr) return FillStart::kNoFrame;
    if (!block.try_enter(word, BlockState::kFilling)) {
        frames_.release(*found, false);
        return FillStart::kNothingToDo;
    }
    attach_frame(region, index, *found);
    found->zeroed = false;
    found->io.kind = store::IoKind::kRead;
    found->io.offset = region.offset_of(index);
    found->io.memory = found->memory;
    found->io.bytes = region.block_bytes;
    region.enter();
    *frame = found;
    return FillStart::kStarted;
}

void Pager::finish_fill(Frame& frame, hanare_status status) noexcept {
    Region& region = *frame.region;
    if (status != HANARE_STATUS_OK) {
        count(region.counters.store_errors);
    } else {
        count(region.counters.prefetch_reads);
        count(region.counters.read_bytes, region.block_bytes);
        status = verify(region, frame);
    }
    if (status != HANARE_STATUS_OK) {
        // Whoever needs the block will read it again and report.
        give_up_frame(frame);
    } else {
        frames_.enqueue(frame, FrameQueue::kAhead);
        region.block(frame.block).leave(BlockState::kStaged);
        frames_.note_progress();
    }
    region.leave();
}

hanare_status Pager::pin(Region& region, uint32_t index, bool write, bool* first) noexcept {
    Block& block = region.block(index);
    for (;;) {
        bool was_mapped = false;
        const hanare_status status = make_resident(region, index, write, false, &was_mapped);
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

void Pager::request_read_ahead(Region& region, uint32_t first, uint32_t count,
                               int32_t step) noexcept {
    if (keeper_ == nullptr) return;
    {
        const sys::LockGuard guard(requests_lock_);
        if (request_count_ == kRequests) return;
        region.enter();
        requests_[(request_first_ + request_count_) % kRequests] = {&region, first, count, step};
        ++request_count_;
    }
    keeper_->kick();
}

bool Pager::next_read_ahead(ReadAhead& request) noexcept {
    const sys::LockGuard guard(requests_lock_);
    if (request_count_ == 0) return false;
    request = requests_[request_first_];
    request_first_ = (request_first_ + 1) % kRequests;
    --request_count_;
    return true;
}

void Pager::drop_read_ahead(const Region& region, uint32_t first, uint32_t last) noexcept {
    const sys::LockGuard guard(requests_lock_);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < request_count_; ++i) {
        const ReadAhead request = requests_[(request_first_ + i) % kRequests];
        if (request.region == &region && request.overlaps(first, last)) {
            request.region->leave();
        } else {
            requests_[(request_first_ + kept++) % kRequests] = request;
        }
    }
    request_count_ = kept;
}

}  // namespace hanare::pager
