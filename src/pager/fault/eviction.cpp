// SPDX-License-Identifier: Apache-2.0
//
// Pager, evictions: how blocks leave, in the threads that fault and in the keeper's.
#include <bit>

#include "base/fetch_ahead.hpp"
#include "base/units.hpp"
#include "pager/fault/checksum.hpp"
#include "pager/fault/pager.hpp"
#include "pager/fault/parts.hpp"

namespace hanare::pager {

using block_word::kDirty;
using block_word::kSecondChance;
using block_word::kStored;

namespace {

// Blocks that are withdrawn to see whether they are used again, before one is evicted anyhow.
constexpr uint32_t kHiddenMax = 4;
// Beside the read of a part room is made for so many bytes.
constexpr uint64_t kBesideBytes = 256 * kKiB;

uint32_t flag_of(Park park) { return park == Park::kSecondChance ? kSecondChance : 0; }

}  // namespace

Pager::Eviction Pager::evict_inline(bool prefer_clean, bool may_start,
                                    hanare_status* failure) noexcept {
    FrameQueue queue = FrameQueue::kNone;
    Frame* frame = frames_.select_victim(queue, prefer_clean);
    // Those that are hidden could be used again all the time.
    for (uint32_t hidden = 0; frame != nullptr && hidden < kHiddenMax; ++hidden) {
        // Where the store refuses writes, what needs none has to go.
        if (prefer_clean || !frames_.wants_hidden(*frame, queue)) break;
        hide_victim(*frame);
        const bool is_last = hidden + 1 == kHiddenMax;
        frame = frames_.select_victim(queue, prefer_clean, is_last);
    }
    return frame != nullptr ? evict(*frame, queue, may_start, failure) : Eviction::kNoVictim;
}

Pager::Eviction Pager::evict(Frame& victim, FrameQueue queue, bool may_start,
                             hanare_status* failure) noexcept {
    FrameRun run(victim);
    // Otherwise what comes with it would be waited for.
    const bool may_write = may_start && fault_service_ == nullptr && transfers_.can_start() &&
                           write_sets_.free_count() >= FrameRun::kMost;
    const Together together = withdraw_run(victim, queue, Park::kFree, may_write, run);
    // Others are tried, and not for ever: each time clean blocks become dirty.
    if (together == Together::kFailed) return Eviction::kDone;
    Eviction outcome = Eviction::kNoVictim;
    FaultTransfers::Batch writes(transfers_);
    for (uint32_t i = 0; i < run.count(); ++i) {
        const bool is_out = together == Together::kYes;
        const Eviction of_one =
            evict_one_of(run[i], is_out, may_start ? &writes : nullptr, failure);
        if (outcome == Eviction::kNoVictim || of_one != Eviction::kFailed) outcome = of_one;
    }
    return outcome;
}

// `writes`: where what has to be written may be added; else nullptr.
Pager::Eviction Pager::evict_one_of(Frame& frame, bool is_out, FaultTransfers::Batch* writes,
                                    hanare_status* failure) noexcept {
    count(frame.region->counters.evictions_inline);
    bool dirty = (frame.region->block(frame.block).load() & kDirty) != 0;
    hanare_status status = is_out ? HANARE_STATUS_OK : withdraw(frame, Park::kFree, &dirty);
    if (status == HANARE_STATUS_OK && !dirty) {
        finish_clean(frame, Park::kFree);
        return Eviction::kDone;
    }
    if (status == HANARE_STATUS_OK) {
        if (writes != nullptr && start_write(frame, *writes)) return Eviction::kStarted;
        status = write_now(frame);
        beside_failed_.store(status != HANARE_STATUS_OK, std::memory_order_relaxed);
        finish_write(frame, status, Park::kFree);
    }
    if (status == HANARE_STATUS_OK) return Eviction::kDone;
    *failure = status;
    return Eviction::kFailed;
}

hanare_status Pager::write_now(Frame& frame) noexcept {
    if (const hanare_status status = prepare_write(frame); status != HANARE_STATUS_OK) {
        return status;
    }
    for (;;) {
        const hanare_status status = store_.write(frame.io.offset, frame.io.memory, frame.io.bytes);
        if (status != HANARE_STATUS_OK || !prepare_next_write(frame)) return status;
    }
}

// The caller owns kWriting.  False: it still does, and nothing has been started.
bool Pager::start_write(Frame& frame, FaultTransfers::Batch& writes) noexcept {
    // Who serves the kernel's faults may be whom a write waits for.
    if (fault_service_ != nullptr || !transfers_.can_start()) return false;
    WriteSet* const set = write_sets_.take();
    if (set == nullptr) return false;
    Region& region = *frame.region;
    // Before the look at the region: its end either waits for these writes, or is seen.
    region.blocks_in_transfer.fetch_add(1, std::memory_order_seq_cst);
    if (region.is_closing() || prepare_write(frame) != HANARE_STATUS_OK) {
        region.blocks_in_transfer.fetch_sub(1, std::memory_order_seq_cst);
        WriteSets::give_back(*set);
        return false;
    }
    set->frame = &frame;
    set->leaving_bytes = frame.sparse ? region.bytes_of_parts(frame.leaving) : frame.bytes;
    set->status.store(HANARE_STATUS_OK, std::memory_order_relaxed);
    storing_bytes_.fetch_add(set->leaving_bytes, std::memory_order_relaxed);
    // Who sleeps already completes it, too.
    region.block(frame.block).leave(BlockState::kStoring);
    start_set(*set, writes);
    return true;
}

// The first of its writes is prepared.
void Pager::start_set(WriteSet& set, FaultTransfers::Batch& writes) noexcept {
    Frame& frame = *set.frame;
    set.count = 0;
    do {
        set.add(frame.io);
    } while (!set.is_full() && prepare_next_write(frame));
    const uint32_t count = set.count;
    set.left.store(count, std::memory_order_relaxed);
    for (uint32_t i = 0; i < count; ++i) writes.add(set.writes[i]);
}

void Pager::finish_set_write(SetWrite& write, hanare_status status) noexcept {
    WriteSet& set = *write.set;
    if (status != HANARE_STATUS_OK) set.status.store(status, std::memory_order_relaxed);
    if (set.left.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    Frame& frame = *set.frame;
    status = set.status.load(std::memory_order_relaxed);
    if (status == HANARE_STATUS_OK && prepare_next_write(frame)) {
        FaultTransfers::Batch writes(transfers_);
        return start_set(set, writes);
    }
    if (status != HANARE_STATUS_OK) {
        write_failure_.store(status, std::memory_order_relaxed);
        failed_writes_.fetch_add(1, std::memory_order_release);
    }
    beside_failed_.store(status != HANARE_STATUS_OK, std::memory_order_relaxed);
    const uint64_t bytes = set.leaving_bytes;
    WriteSets::give_back(set);
    // The region is there until it is left.
    frame.region->blocks_in_transfer.fetch_sub(1, std::memory_order_seq_cst);
    finish_write(frame, status, Park::kFree);
    storing_bytes_.fetch_sub(bytes, std::memory_order_seq_cst);
}

void Pager::finish_transfer(store::IoRequest& request) noexcept {
    if (request.kind == store::IoKind::kRead) {
        finish_fill(*static_cast<FrameIo&>(request).frame, request.status);
    } else {
        finish_set_write(static_cast<SetWrite&>(request), request.status);
    }
}

void Pager::abandon_transfer(store::IoRequest& request) noexcept {
    if (request.kind == store::IoKind::kRead) {
        abandon_fill(*static_cast<FrameIo&>(request).frame);
    } else {
        finish_set_write(static_cast<SetWrite&>(request),
                         store_.write(request.offset, request.memory, request.bytes));
    }
}

// While a part is on its way the processor has nothing to do, and others will need room soon. Where
// the last write failed, who needs the room sees to it.
void Pager::evict_beside(PartReads::Buffer& read) noexcept {
    if (fault_service_ != nullptr || beside_failed_.load(std::memory_order_relaxed)) return;
    while (!read.is_done() && transfers_.can_start() && write_sets_.has_free() &&
           frames_.available_bytes() + storing_bytes() < kBesideBytes) {
        if (frames_.give_up_stale()) continue;
        const uint32_t hidden = hidden_beside_.load(std::memory_order_relaxed);
        FrameQueue queue = FrameQueue::kNone;
        Frame* const frame = frames_.select_victim(queue, false, hidden + 1 >= kHiddenMax);
        if (frame == nullptr) return;
        const bool hides = frames_.wants_hidden(*frame, queue);
        hidden_beside_.store(hides ? hidden + 1 : 0, std::memory_order_relaxed);
        if (hides) {
            hide_victim(*frame);
            continue;
        }
        hanare_status ignored = HANARE_STATUS_OK;
        if (evict(*frame, queue, true, &ignored) == Eviction::kFailed) return;
    }
}

bool Pager::evict_one() noexcept {
    hanare_status failure = HANARE_STATUS_OK;
    return evict_inline(false, false, &failure) == Eviction::kDone;
}

FilePlace Pager::place_of(const Region& region, uint32_t index) const noexcept {
    return {region.file.number(), static_cast<uint64_t>(region.address_of(index) - region.begin())};
}

// Unmaps a block, which equals the store if its content is not wanted.
int Pager::take_out(Frame& frame, bool with_content) noexcept {
    const Region& region = *frame.region;
    std::byte* const address = region.address_of(frame.block);
    if (!engine_.copies()) {
        return engine_.withdraw(address, frame.memory, region.block_bytes, {});
    }
    // With pages, if there are some; whoever gets the frame next has a use for them, too.
    frames_.refill_slot(frame);
    int error = 0;
    if (with_content) {
        error = engine_.withdraw(address, frame.memory, region.block_bytes,
                                 place_of(region, frame.block));
    } else if (engine_.discard(address, region.block_bytes) != 0) {
        error = EAGAIN;  // it stays mapped, as it was: the program may have locked it in memory
    }
    if (error != 0) frames_.empty_slot(frame);
    return error;
}

hanare_status Pager::withdraw(Frame& frame, Park park_clean, bool* dirty, bool all) noexcept {
    if (frame.sparse) return withdraw_sparse(frame, all, dirty);
    Region& region = *frame.region;
    Block& block = region.block(frame.block);
    const uint32_t word = block.load();
    *dirty = (word & kDirty) != 0;
    const BlockState state = block_word::state(word);
    if (state == BlockState::kWriting || state == BlockState::kInstalling) return HANARE_STATUS_OK;
    const int error = take_out(frame, *dirty || park_clean != Park::kFree);
    if (error != 0) {
        note_still_mapped(frame, *dirty, error);
        return engine_failed(error);
    }
    if (*dirty) block.leave(BlockState::kWriting);
    return HANARE_STATUS_OK;
}

// The owner leaves kWithdrawing and the region, after an error.
void Pager::note_still_mapped(Frame& frame, bool was_dirty, int os_errno) noexcept {
    Region& region = *frame.region;
    Block& block = region.block(frame.block);
    frames_.enqueue(frame, FrameQueue::kProbation);
    if (os_errno == EAGAIN) {
        block.leave(was_dirty ? BlockState::kWritable : BlockState::kReadOnly);
    } else {
        // What was moved and moved back has lost its write protection.
        // Where that fails, too, the program has unmapped them; its next access will tell.
        if (!was_dirty) region.add_dirty(region.block_bytes);
        engine_.allow_writes(region.address_of(frame.block), region.block_bytes);
        block.leave(BlockState::kWritable, kDirty);
    }
    frames_.note_progress();
    region.leave();
}

hanare_status Pager::prepare_write(Frame& frame) noexcept {
    if (frame.region->has_slots()) {
        const hanare_status status = own_place(*frame.region, frame);
        if (status != HANARE_STATUS_OK) return status;
    }
    prepare_run(frame);
    return HANARE_STATUS_OK;
}

void Pager::prepare_run(Frame& frame) noexcept {
    const Region& region = *frame.region;
    read_ahead_depth_.note_other_use();
    uint32_t first = 0;
    uint32_t parts = region.parts_per_block;
    std::byte* memory = frame.memory;
    if (frame.sparse) {
        first = static_cast<uint32_t>(std::countr_zero(frame.unwritten));
        const bool shelved = (frame.shelved >> first & 1) != 0;
        const uint64_t there = shelved ? frame.shelved : frame.present;
        parts = static_cast<uint32_t>(std::countr_one((frame.unwritten & there) >> first));
        frame.unwritten &= ~(all_ones(parts) << first);
        memory = (shelved ? region.shelf_of(frame.block) : region.address_of(frame.block)) +
                 first * region.part_bytes;
    }
    frame.io.kind = store::IoKind::kWrite;
    frame.io.offset = region.offset_of(frame.block) + first * region.part_bytes;
    frame.io.memory = memory;
    frame.io.bytes = parts * region.part_bytes;
    if (!has_checksums_) return;
    uint32_t* checksums = region.checksums_of(frame.block) + first;
    for (uint64_t i = 0; i < parts; ++i) {
        const uint64_t start = i * region.part_bytes;
        if (i + 1 < parts) fetch_ahead(memory + start + region.part_bytes, region.part_bytes);
        checksums[i] = part_checksum(memory + start, region.part_bytes, frame.io.offset + start);
    }
}

bool Pager::prepare_next_write(Frame& frame) noexcept {
    if (!frame.sparse || frame.unwritten == 0) return false;
    prepare_run(frame);
    return true;
}

void Pager::finish_clean(Frame& frame, Park park) noexcept {
    Region& region = *frame.region;
    if (frame.sparse) {
        count(region.counters.clean_drops);
        note_use(frame, region, frame.block, false);
        give_up_parts(frame, 0, 0);
    } else if (park == Park::kFree) {
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
    if (frame.sparse) return finish_sparse_write(frame, status, park);
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
    region.remove_dirty(region.block_bytes);
    block.stored_parts = region.all_parts();
    if (park == Park::kFree) {
        region.remove_resident(region.block_bytes);
        block.leave(BlockState::kAbsent, kStored, kDirty | kSecondChance);
        frames_.release(frame, false);
    } else {
        frames_.enqueue(frame, FrameQueue::kInactive);
        block.leave(BlockState::kStaged, kStored | flag_of(park), kDirty);
        frames_.note_progress();
    }
    region.leave();
}

}  // namespace hanare::pager
