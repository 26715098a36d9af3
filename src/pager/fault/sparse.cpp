// SPDX-License-Identifier: Apache-2.0
//
// Pager, sparse blocks: parts that are fetched alone, for random accesses and for streams that use
// little of each block.  Their content lives in the region only; clean parts are write-protected
// copies of the store, dirty ones are written back from where they are.
//
// Whoever enters kExtending has the room that it needs, so it never waits for the keeper.
#include <bit>
#include <cstring>

#include "base/assert.hpp"
#include "base/sanitizers.hpp"
#include "pager/fault/checksum.hpp"
#include "pager/fault/pager.hpp"
#include "pager/fault/parts.hpp"

namespace hanare::pager {

using block_word::kDirty;
using block_word::kSecondChance;
using block_word::kStored;

namespace {

uint64_t bit_of(uint32_t part) { return uint64_t{1} << part; }

std::byte* address_of_part(const Region& region, uint32_t index, uint32_t part) {
    return region.address_of(index) + part * region.part_bytes;
}

}  // namespace

Pager::Served Pager::serve_part(Fault& fault, uint32_t word, hanare_status* status,
                                bool* was_mapped) noexcept {
    Region& region = fault.region;
    Block& block = region.block(fault.index);
    Room room;
    *status = obtain_room(region, true, &room);
    if (*status != HANARE_STATUS_OK) return Served::kDone;
    Frame* frame = nullptr;
    const bool begins = block_word::state(word) == BlockState::kAbsent;
    if (begins) {
        frame = frames_.acquire_sparse(*region.sparse_class);
        if (frame == nullptr) {
            fault.random = false;  // a whole block then
            frames_.refund(room.bytes);
            return Served::kRetry;
        }
    }
    if (!block.try_enter(word, BlockState::kExtending)) {
        frames_.refund(room.bytes);
        if (begins) frames_.release(*frame, true);
        return Served::kRetry;
    }
    if (begins) {
        frame->region = &region;
        frame->block = fault.index;
        std::atomic_ref(frame->present).store(0, std::memory_order_relaxed);
        std::atomic_ref(frame->use).store(fault.use, std::memory_order_relaxed);
        frame->dirty = 0;
        block.frame.store(frame->index | Block::kSparseFrame, std::memory_order_relaxed);
    } else {
        frame = region.frame_of(block);
    }
    if ((frame->present & bit_of(fault.part)) != 0) {
        frames_.refund(room.bytes);
        *status = use_part(fault, *frame, was_mapped);
    } else {
        *status = add_part(fault, *frame);
    }
    return Served::kDone;
}

// The caller owns kExtending; the part is present.
hanare_status Pager::use_part(const Fault& fault, Frame& frame, bool* was_mapped) noexcept {
    Region& region = fault.region;
    Block& block = region.block(fault.index);
    const uint64_t bit = bit_of(fault.part);
    int error = 0;
    if (fault.write && (frame.dirty & bit) == 0) {
        count(region.counters.upgrade_faults);
        region.add_dirty(region.part_bytes);
        error = engine_.allow_writes(address_of_part(region, fault.index, fault.part),
                                     region.part_bytes);
        if (error == 0) {
            frame.dirty |= bit;
        } else {
            region.remove_dirty(region.part_bytes);
        }
    } else {
        *was_mapped = !fault.waited;
    }
    block.leave(BlockState::kSparse, frame.dirty != 0 ? kDirty : 0);
    frames_.note_progress();
    return error == 0 ? HANARE_STATUS_OK : engine_failed(error);
}

// The caller owns kExtending and has reserved room; the part is absent.
hanare_status Pager::add_part(const Fault& fault, Frame& frame) noexcept {
    Region& region = fault.region;
    Block& block = region.block(fault.index);
    count_fault(fault);
    PartReads::Buffer buffer(part_reads_);
    const std::byte* content = nullptr;
    hanare_status status = load_part(fault, buffer, &content);
    if (status == HANARE_STATUS_OK) {
        region.add_resident(region.part_bytes);
        if (fault.write) region.add_dirty(region.part_bytes);
        const int error = engine_.install_part(address_of_part(region, fault.index, fault.part),
                                               content, region.part_bytes, fault.write);
        if (error != 0) {
            region.remove_resident(region.part_bytes);
            if (fault.write) region.remove_dirty(region.part_bytes);
            status = engine_failed(error);
        }
    }
    if (status != HANARE_STATUS_OK) {
        frames_.refund(region.part_bytes);
        if (frame.present == 0) {
            give_up_sparse(frame);
        } else {
            block.leave(BlockState::kSparse);
            frames_.note_progress();
        }
        return status;
    }
    std::atomic_ref(frame.present)
        .store(frame.present | bit_of(fault.part), std::memory_order_relaxed);
    if (fault.write) frame.dirty |= bit_of(fault.part);
    frames_.requeue_sparse(frame, frame.bytes + region.part_bytes);
    block.leave(BlockState::kSparse, fault.write ? kDirty : 0, kSecondChance);
    frames_.note_progress();
    return HANARE_STATUS_OK;
}

hanare_status Pager::load_part(const Fault& fault, PartReads::Buffer& buffer,
                               const std::byte** content) noexcept {
    Region& region = fault.region;
    if ((region.block(fault.index).stored_parts & bit_of(fault.part)) == 0) {
        count(region.counters.zero_fills);
        *content = zeros_.address();
        return HANARE_STATUS_OK;
    }
    note_read();
    if (fault.use != StreamUse::kSample) read_ahead_depth_.note_other_use();
    *content = buffer.memory();
    const uint64_t offset = region.offset_of(fault.index) + fault.part * region.part_bytes;
    const hanare_status status = buffer.read(offset, region.part_bytes);
    if (status != HANARE_STATUS_OK) {
        count(region.counters.store_errors);
        return status;
    }
    count(region.counters.part_reads);
    count(region.counters.read_bytes, region.part_bytes);
    if (part_checksum(*content, region.part_bytes, offset) ==
        region.checksums_of(fault.index)[fault.part]) {
        return HANARE_STATUS_OK;
    }
    count(region.counters.checksum_errors);
    return HANARE_STATUS_CORRUPT;
}

// A sparse block is wanted as a whole.
Pager::Served Pager::complete(Fault& fault, uint32_t word, hanare_status* status) noexcept {
    Region& region = fault.region;
    Block& block = region.block(fault.index);
    Room room;
    *status = obtain_room(region, false, &room);
    if (*status != HANARE_STATUS_OK) return Served::kDone;
    if (!block.try_enter(word, BlockState::kExtending)) {
        frames_.release(*room.frame, false);
        return Served::kRetry;
    }
    Frame& sparse = *region.frame_of(block);
    room.frame->region = &region;
    room.frame->block = fault.index;
    *status = read_block(region, fault.index, *room.frame, sparse.dirty);
    if (*status != HANARE_STATUS_OK) {
        frames_.release(*room.frame, false);
        block.leave(BlockState::kSparse);
        frames_.note_progress();
        return Served::kDone;
    }
    *status = finish_completion(sparse, *room.frame, HANARE_STATUS_OK);
    // Staged now; the next turn maps it, unless somebody else is faster.
    fault.waited = true;
    return *status == HANARE_STATUS_OK ? Served::kRetry : Served::kDone;
}

hanare_status Pager::finish_completion(Frame& sparse, Frame& whole, hanare_status status) noexcept {
    Region& region = *sparse.region;
    Block& block = region.block(sparse.block);
    const bool dirty = sparse.dirty != 0;
    if (status == HANARE_STATUS_OK) {
        const int error = absorb_sparse(sparse, whole);
        if (error != 0) status = engine_failed(error);
    }
    if (status != HANARE_STATUS_OK) {
        frames_.release(whole, false);
        block.leave(BlockState::kSparse);
        frames_.note_progress();
        return status;
    }
    count(region.counters.completions);
    frames_.enqueue(whole, dirty ? FrameQueue::kProbation : FrameQueue::kAhead);
    block.leave(BlockState::kStaged);
    frames_.note_progress();
    return HANARE_STATUS_OK;
}

int Pager::absorb_sparse(Frame& sparse, Frame& whole) noexcept {
    Region& region = *sparse.region;
    const uint32_t index = sparse.block;
    std::byte* address = region.address_of(index);
    int error = forbid_writes(sparse);
    if (error == 0) {
        const base::UnseenByTsan unseen;
        for_each_run(sparse.dirty, [&](uint32_t first, uint32_t parts) {
            const uint64_t start = first * region.part_bytes;
            std::memcpy(whole.memory + start, address + start, parts * region.part_bytes);
        });
        error = engine_.discard(address, region.block_bytes);
    }
    if (error != 0) {
        allow_writes(sparse);
        return error;
    }
    region.remove_resident(sparse.bytes);
    if (sparse.dirty != 0) {
        region.add_dirty(region.block_bytes - region.bytes_of_parts(sparse.dirty));
    }
    attach_frame(region, index, whole);
    frames_.release(sparse, true);
    return 0;
}

int Pager::forbid_writes(const Frame& sparse) noexcept {
    const Region& region = *sparse.region;
    int error = 0;
    for_each_run(sparse.dirty, [&](uint32_t first, uint32_t parts) {
        if (error != 0) return;
        error = engine_.forbid_writes(address_of_part(region, sparse.block, first),
                                      parts * region.part_bytes);
    });
    return error;
}

// Where that fails, too, the program has unmapped them; its next access will tell.
void Pager::allow_writes(const Frame& sparse) noexcept {
    const Region& region = *sparse.region;
    for_each_run(sparse.dirty, [&](uint32_t first, uint32_t parts) {
        engine_.allow_writes(address_of_part(region, sparse.block, first),
                             parts * region.part_bytes);
    });
}

hanare_status Pager::withdraw_sparse(Frame& frame, bool* dirty) noexcept {
    Region& region = *frame.region;
    Block& block = region.block(frame.block);
    *dirty = frame.dirty != 0;
    const int error = forbid_writes(frame);
    if (error != 0) {
        allow_writes(frame);
        frames_.requeue_sparse(frame, frame.bytes);
        block.leave(BlockState::kSparse);
        frames_.note_progress();
        region.leave();
        return engine_failed(error);
    }
    frame.unwritten = frame.dirty;
    if (*dirty) block.leave(BlockState::kWriting);
    return HANARE_STATUS_OK;
}

void Pager::finish_sparse_write(Frame& frame, hanare_status status, Park park) noexcept {
    Region& region = *frame.region;
    Block& block = region.block(frame.block);
    if (status == HANARE_STATUS_OK) {
        const uint64_t bytes = region.bytes_of_parts(frame.dirty);
        count(region.counters.write_backs);
        count(region.counters.written_bytes, bytes);
        region.remove_dirty(bytes);
        block.stored_parts |= frame.dirty;
        frame.dirty = 0;
        if (park != Park::kKeep) {
            note_use(frame, region, true);
            give_up_sparse(frame, kStored);
            region.leave();
            return;
        }
    } else {
        count(region.counters.store_errors);
        allow_writes(frame);
    }
    const bool dirty = frame.dirty != 0;
    frames_.requeue_sparse(frame, frame.bytes);
    block.leave(BlockState::kSparse, dirty ? 0 : kStored, dirty ? 0 : kDirty);
    frames_.note_progress();
    region.leave();
}

// The owner leaves its transient state for an absent block; nothing of it is dirty.
void Pager::give_up_sparse(Frame& frame, uint32_t set, uint32_t clear) noexcept {
    Region& region = *frame.region;
    const std::atomic_ref present(frame.present);
    const bool mapped = present.load(std::memory_order_relaxed) != 0;
    // Who misses a page from now on does so rightly (is_missed_by_writer).
    present.store(0, std::memory_order_release);
    if (mapped) {
        const int error = engine_.discard(region.address_of(frame.block), region.block_bytes);
        HANARE_ASSERT(error == 0);
    }
    region.remove_resident(frame.bytes);
    region.block(frame.block).leave(BlockState::kAbsent, set, kDirty | kSecondChance | clear);
    frames_.release(frame, true);
}

}  // namespace hanare::pager
