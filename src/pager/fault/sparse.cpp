// SPDX-License-Identifier: Apache-2.0
//
// Pager, sparse blocks: parts that are fetched alone, for random accesses and for streams that use
// little of each block.  Their content lives in the region only; clean parts are write-protected
// copies of the store, dirty ones are written back from where they are.  How they leave: shelf.cpp.
//
// Whoever enters kExtending has the room that it needs, so it never waits for the keeper.
#include <bit>
#include <cstring>

#include "base/assert.hpp"
#include "base/sanitizers.hpp"
#include "pager/fault/checksum.hpp"
#include "pager/fault/pager.hpp"
#include "pager/fault/parts.hpp"
#include "pager/fault/sparse_frame.hpp"

namespace hanare::pager {

using block_word::kDense;
using block_word::kDirty;
using block_word::kSecondChance;

namespace {

// A hint for who does not own the block.
bool holds_part(Frame& frame, uint32_t part) {
    const uint64_t held = std::atomic_ref(frame.present).load(std::memory_order_relaxed) |
                          std::atomic_ref(frame.shelved).load(std::memory_order_relaxed);
    return (held & bit_of(part)) != 0;
}

// Of what is read anew all the same, only what differs is kept.
uint64_t kept_parts(const Frame& sparse) {
    return sparse.region->has_shelf() ? sparse.held() : sparse.dirty;
}

}  // namespace

Pager::Served Pager::serve_part(Fault& fault, uint32_t word, hanare_status* status,
                                bool* was_mapped) noexcept {
    Region& region = fault.region;
    Block& block = region.block(fault.index);
    Room room;
    Frame* frame = nullptr;
    const bool begins = block_word::state(word) == BlockState::kAbsent;
    const bool passes = fault.history != nullptr && fault.use == StreamUse::kNone;
    fault.passage = passes ? passage_of(fault) : Passage{};
    if (begins || !holds_part(*region.frame_of(block), fault.part)) {
        // Neighbours would not tell what a stream uses.
        const bool alone = !region.has_shelf() || fault.use == StreamUse::kSample;
        const uint64_t parts = std::max(alone ? 1 : region.around.parts(), 1 + fault.passage.parts);
        *status = obtain_room(region, std::min(parts * region.part_bytes, uint64_t{kPartBytesMax}),
                              &room);
        if (*status != HANARE_STATUS_OK && parts > 1) {
            *status = obtain_room(region, region.part_bytes, &room);
        }
        if (*status != HANARE_STATUS_OK) return Served::kDone;
    }
    if (begins) {
        frame = frames_.acquire_sparse(*region.sparse_class);
        if (frame == nullptr) {
            fault.random = false;  // a whole block then
            frames_.refund(room.bytes);
            return Served::kRetry;
        }
    }
    if (!block.try_enter(word, BlockState::kExtending)) {
        if (room.found()) frames_.refund(room.bytes);
        if (begins) frames_.release(*frame, true);
        return Served::kRetry;
    }
    if (begins) {
        frame->region = &region;
        frame->block = fault.index;
        store_mask(frame->present, 0);
        frame->neighbours = 0;
        frame->use_of_parts = {};
        frame->read_only_at_first = 0;
        std::atomic_ref(frame->use).store(fault.use, std::memory_order_relaxed);
        store_mask(frame->shelved, 0);
        store_mask(frame->dirty, 0);
        frame->leftovers = 0;
        frame->counts_use = true;
        frame->tests_use = false;
        frame->tests_fill = false;
        frame->parts_passed = 0;
        if (fault.use == StreamUse::kNone) begin_test(*frame);
        block.frame.store(frame->index | Block::kSparseFrame, std::memory_order_relaxed);
    } else {
        frame = region.frame_of(block);
        if (fault.use == StreamUse::kSample) {
            std::atomic_ref(frame->use).store(fault.use, std::memory_order_relaxed);
        }
    }
    if ((frame->held() & bit_of(fault.part)) != 0) {
        if (room.found()) frames_.refund(room.bytes);
        if ((frame->present & bit_of(fault.part)) != 0) {
            *status = use_part(fault, *frame, was_mapped);
        } else {
            count_fault(fault);
            count(region.counters.staged_hits);
            *status = take_from_shelf(fault, *frame);
        }
    } else if (room.found()) {
        *status = add_parts(fault, *frame, room.bytes);
    } else {
        block.leave(BlockState::kSparse);  // it has just gone
        frames_.note_progress();
        return Served::kRetry;
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
            store_mask(frame.dirty, frame.dirty | bit);
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

bool Pager::is_whole_better(const Fault& fault) noexcept {
    const uint32_t word = fault.region.block(fault.index).load();
    const BlockState state = block_word::state(word);
    if ((word & kDense) == 0 || !fault.region.has_shelf() || fault.use != StreamUse::kNone) {
        return false;
    }
    return (state == BlockState::kAbsent || state == BlockState::kStaged) &&
           fault.region.dense.is_trusted();
}

// Whether it costs no more than a write to write back what has not changed.
bool Pager::is_written_easily(Region& region, uint32_t index) noexcept {
    if (!region.has_shelf() || beside_failed_.load(std::memory_order_relaxed)) return false;
    if (!region.has_slots()) return true;
    const uint32_t place = region.slots()[index].load(std::memory_order_relaxed);
    return place != 0 && !slots_->is_shared(place - 1);
}

// What is read for a part that is missing: it, and those beside it that are missing, too, within
// the room: where somebody passes through the block as many as are there, else aligned ones.  The
// caller owns the block.
PartRun Pager::run_around(const Fault& fault, const Frame& frame, uint64_t room_bytes) noexcept {
    const Region& region = fault.region;
    const uint64_t missing = region.block(fault.index).stored_parts & ~frame.held();
    if ((missing & bit_of(fault.part)) == 0) return {fault.part, 1};  // zeros
    const auto most = static_cast<uint32_t>(room_bytes >> region.part_shift);
    if (const uint32_t passed = fault.passage.parts; passed > 0) {
        return run_ahead(missing, fault.part, fault.passage, std::min(most, 1 + passed));
    }
    return run_with(missing & aligned_parts(fault.part, most), fault.part);
}

// The caller owns kExtending and has reserved room; the part is absent.
hanare_status Pager::add_parts(const Fault& fault, Frame& frame, uint64_t room_bytes) noexcept {
    Region& region = fault.region;
    Block& block = region.block(fault.index);
    count_fault(fault);
    const bool may_expect =
        (block.stored_parts & bit_of(fault.part)) != 0 && is_written_easily(region, fault.index);
    const bool writable = fault.write || (may_expect && region.first_writes.are_expected());
    PartRun run = run_around(fault, frame, room_bytes);
    PartReads::Buffer buffer(part_reads_);
    const std::byte* content = nullptr;
    uint64_t installed = 0;
    hanare_status status = load_parts(fault, run, buffer, &content);
    if (status != HANARE_STATUS_OK && run.count > 1) {
        run = {fault.part, 1};  // what fails may be a neighbour's
        status = load_parts(fault, run, buffer, &content);
    }
    if (status == HANARE_STATUS_OK) {
        const int error = install_parts(fault, run, content, writable, &installed);
        if (error != 0) status = engine_failed(error);
    }
    const uint64_t bytes = region.bytes_of_parts(installed);
    if (bytes < room_bytes) frames_.refund(room_bytes - bytes);
    if (installed == 0) {
        if (frame.held() == 0) {
            give_up_sparse(frame);
        } else {
            block.leave(BlockState::kSparse);
            frames_.note_progress();
        }
        return status;
    }
    const uint64_t wanted = bit_of(fault.part);
    const uint64_t neighbours = region.has_shelf() ? installed & ~wanted : 0;
    store_mask(frame.present, frame.present | (installed & ~neighbours));
    store_mask(frame.shelved, frame.shelved | neighbours);
    frame.neighbours |= neighbours;
    const uint64_t written = writable ? installed & wanted : 0;
    if (may_expect) frame.read_only_at_first |= installed & wanted & ~written;
    store_mask(frame.dirty, frame.dirty | written);
    if (region.has_shelf()) {
        frames_.resize_sparse(frame, frame.bytes + bytes);  // the clock's hand passes all of them
    } else {
        frames_.requeue_sparse(frame, frame.bytes + bytes);
    }
    block.leave(BlockState::kSparse, written != 0 ? kDirty : 0, kSecondChance);
    frames_.note_progress();
    return status;
}

// All that succeeds is `installed`: the part that is wanted is mapped, and its neighbours are on
// the shelf, where it shows whether they are used, or mapped, too.
int Pager::install_parts(const Fault& fault, PartRun run, const std::byte* content, bool writable,
                         uint64_t* installed) noexcept {
    Region& region = fault.region;
    const uint64_t wanted = bit_of(fault.part);
    const auto install = [&](std::byte* block, uint64_t parts, bool may_write) {
        const auto first = static_cast<uint32_t>(std::countr_zero(parts));
        const uint64_t bytes = region.bytes_of_parts(parts);
        region.add_resident(bytes);
        if (parts == wanted && may_write) region.add_dirty(bytes);
        const int error = engine_.install_part(block + first * region.part_bytes,
                                               content + (first - run.first) * region.part_bytes,
                                               bytes, may_write);
        if (error == 0) {
            *installed |= parts;
        } else {
            region.remove_resident(bytes);
            if (parts == wanted && may_write) region.remove_dirty(bytes);
        }
        return error;
    };
    const int error = retry_after_evictions(
        [&] { return install(region.address_of(fault.index), wanted, writable); });
    if (error != 0) return error;
    const uint64_t all = all_ones(run.count) << run.first;
    const uint64_t before = all & (wanted - 1);
    const uint64_t behind = all & ~before & ~wanted;
    for (const uint64_t parts : {before, behind}) {
        if (parts == 0) continue;
        if (region.has_shelf()) {
            install(region.shelf_of(fault.index), parts, true);  // or not
        } else {
            install(region.address_of(fault.index), parts, false);
        }
    }
    return 0;
}

hanare_status Pager::load_parts(const Fault& fault, PartRun run, PartReads::Buffer& buffer,
                                const std::byte** content) noexcept {
    Region& region = fault.region;
    if ((region.block(fault.index).stored_parts & bit_of(fault.part)) == 0) {
        count(region.counters.zero_fills);
        *content = zeros_.address();
        return HANARE_STATUS_OK;
    }
    note_read();
    if (region.has_shelf()) frames_.note_missed();
    if (fault.use != StreamUse::kSample) read_ahead_depth_.note_other_use();
    *content = buffer.memory();
    const uint64_t offset = region.offset_of(fault.index) + run.first * region.part_bytes;
    const uint64_t bytes = run.count * region.part_bytes;
    buffer.start(offset, bytes);
    if (region.has_shelf() && is_overcommitted()) evict_beside(buffer);
    const hanare_status status = buffer.finish();
    if (status != HANARE_STATUS_OK) {
        count(region.counters.store_errors);
        return status;
    }
    count(region.counters.part_reads);
    count(region.counters.read_bytes, bytes);
    return verify(region, fault.index, *content, all_ones(run.count) << run.first, run.first);
}

// A sparse block is wanted as a whole.
Pager::Served Pager::complete(Fault& fault, uint32_t word, hanare_status* status) noexcept {
    Region& region = fault.region;
    Block& block = region.block(fault.index);
    Room room;
    *status = obtain_room(region, 0, &room);
    if (*status != HANARE_STATUS_OK) return Served::kDone;
    if (!block.try_enter(word, BlockState::kExtending)) {
        frames_.release(*room.frame, false);
        return Served::kRetry;
    }
    if (fault.history != nullptr && FrameTable::is_held(region, fault.index)) {
        // A system call uses parts of it.
        frames_.release(*room.frame, false);
        block.leave(BlockState::kSparse);
        frames_.note_progress();
        fault.random = true;
        return Served::kRetry;
    }
    Frame& sparse = *region.frame_of(block);
    room.frame->region = &region;
    room.frame->block = fault.index;
    *status = read_block(region, fault.index, *room.frame, kept_parts(sparse));
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
    const uint64_t kept = kept_parts(sparse);
    const auto copy = [&](std::byte* from, uint64_t which) {
        for_each_run(which, [&](uint32_t first, uint32_t parts) {
            const uint64_t start = first * region.part_bytes;
            std::memcpy(whole.memory + start, from + start, parts * region.part_bytes);
        });
    };
    int error = forbid_writes(sparse, sparse.present);
    if (error == 0) {
        const base::UnseenByTsan unseen;
        copy(address, kept & sparse.present);
        if (sparse.shelved != 0) copy(region.shelf_of(index), kept & sparse.shelved);
        if (sparse.present != 0) error = engine_.discard(address, region.block_bytes);
    }
    if (error == 0) drop_leftovers(sparse);
    if (error == 0 && sparse.shelved != 0) clear_shelf(region, index);
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

}  // namespace hanare::pager
