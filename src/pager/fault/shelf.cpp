// SPDX-License-Identifier: Apache-2.0
//
// Pager, what leaves of sparse blocks, and comes back.  Where the region has a shelf, they are
// evicted part by part, as a clock does it: when its turn comes, a block's mapped parts are
// withdrawn to the shelf, except those that came back from there lately; those that are used come
// back, and those that are still there at the next turn go.  Neighbours that are read along with a
// part begin there.  A whole block that was withdrawn, or of which a stream may use little, becomes
// sparse in the same way when one of its parts is used.
#include <array>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/assert.hpp"
#include "pager/fault/pager.hpp"
#include "pager/fault/parts.hpp"
#include "pager/fault/sparse_frame.hpp"

namespace hanare::pager {

using block_word::kDense;
using block_word::kDirty;
using block_word::kSecondChance;
using block_word::kStored;

namespace {

// A block of whose parts at most one in so many is not used in its time on the shelf is in dense
// use, and remains so while one in so many is used at least.
constexpr uint32_t kUnusedShare = 16;
constexpr uint32_t kStillDenseShare = 2;
// A sparse block of which one part in so many is there, at least, has been in use by parts.
constexpr uint32_t kFewShare = 16;
// So many bytes are copied sooner than moved (decision 44).
constexpr uint64_t kCopiedBytesMax = 32 * 1024;
// When a thread has copied so many, those that they are copies of are dropped.
constexpr uint64_t kTwiceBytesMax = 96 * 1024;

void end_test(Frame& frame, bool is_dense) {
    if (!std::exchange(frame.tests_use, false)) return;
    frame.region->dense.note(is_dense);
    if (is_dense) {
        frame.region->block(frame.block).word.fetch_or(kDense, std::memory_order_relaxed);
    }
}

void note_leaving(Frame& frame) {
    frame.use_of_parts.forget(frame.leaving);
    if (const uint64_t judged = frame.read_only_at_first & frame.leaving; judged != 0) {
        const uint64_t written = judged & frame.leaving_dirty;
        frame.region->first_writes.note(static_cast<uint32_t>(std::popcount(written)),
                                        static_cast<uint32_t>(std::popcount(judged)));
        frame.read_only_at_first &= ~judged;
    }
    if (const uint64_t unused = frame.neighbours & frame.leaving; unused != 0) {
        frame.region->around.note(0, static_cast<uint32_t>(std::popcount(unused)));
        frame.neighbours &= ~unused;
    }
}

// At the end of a block's turn, in memory or on the shelf.
void note_turn(Frame& frame) {
    const auto used = static_cast<uint32_t>(std::popcount(frame.present));
    end_test(frame, used * kStillDenseShare >= frame.region->parts_per_block);
    try_to_end_fill_test(frame);
}

}  // namespace

// The caller owns a transient state; the parts are on the shelf, and all dirty or all clean.
int Pager::take_run_from_shelf(Frame& frame, uint32_t first, uint32_t parts, bool write) noexcept {
    Region& region = *frame.region;
    const uint64_t bytes = parts * region.part_bytes;
    const uint64_t run = all_ones(parts) << first;
    std::byte* const address = address_of_part(region, frame.block, first);
    std::byte* const shelf = shelf_of_part(region, frame.block, first);
    const bool was_dirty = (frame.dirty & run) != 0;
    HANARE_ASSERT(!was_dirty || (frame.dirty & run) == run);
    // Of several at least some are used by chance.
    const bool may_expect =
        parts == 1 && !write && !was_dirty && is_written_easily(region, frame.block);
    bool writable = write || was_dirty || (may_expect && region.first_writes.are_expected());
    bool tried = false;
    bool copies = bytes <= kCopiedBytesMax;
    const int error = retry_after_evictions([&] {
        if (copies) {
            const int copy_error = engine_.install_part(address, shelf, bytes, writable);
            // Several mappings: page by page then.
            copies = copy_error != EINVAL && copy_error != ENOENT;
            if (copies) return copy_error;
        }
        // The last try may have mapped it for a moment, in which it was written to.
        if (std::exchange(tried, true)) writable = true;
        return writable ? engine_.install_writable(address, shelf, bytes, {})
                        : engine_.install_read_only(address, shelf, bytes, &writable);
    });
    if ((writable || error != 0) && !was_dirty) {
        region.add_dirty(bytes);
        store_mask(frame.dirty, frame.dirty | run);
    }
    if (copies && error == 0) frame.leftovers = leftovers_.add(shelf, bytes);
    // What has failed may be dirty now.
    frame.neighbours &= ~run;
    if (error == 0) {
        store_mask(frame.shelved, frame.shelved & ~run);
        store_mask(frame.present, frame.present | run);
        if (!writable && may_expect) frame.read_only_at_first |= run;
    }
    return error;
}

// Of what came with another part all comes back with the first that is read.  Who passes through
// what was withdrawn, as a whole or not, gets half as much at once as came back before; while it is
// found how much of the block is used only what is.
PartRun Pager::run_that_returns(const Fault& fault, const Frame& frame) noexcept {
    const Region& region = fault.region;
    const PartRun alone = {fault.part, 1};
    if ((frame.neighbours & bit_of(fault.part)) != 0) {
        const uint64_t group = aligned_parts(fault.part, ReadAround::kParts);
        return fault.write ? alone : run_with(frame.neighbours & group, fault.part);
    }
    const bool was_dirty = (frame.dirty & bit_of(fault.part)) != 0;
    if (frame.tests_fill || (fault.write && !was_dirty)) return alone;
    const uint64_t alike =
        frame.shelved & ~frame.neighbours & (was_dirty ? frame.dirty : ~frame.dirty);
    const auto most = static_cast<uint32_t>(kPartBytesMax >> region.part_shift);
    const uint32_t count = std::clamp(fault.passage.parts / 2, 1u, std::max(most, 1u));
    return run_ahead(alike, fault.part, fault.passage, count);
}

// The caller owns a transient state.
hanare_status Pager::take_from_shelf(const Fault& fault, Frame& frame) noexcept {
    Region& region = fault.region;
    Block& block = region.block(fault.index);
    uint32_t flags = 0;
    const PartRun run = run_that_returns(fault, frame);
    const bool is_neighbour = (frame.neighbours & bit_of(fault.part)) != 0;
    const bool was_withdrawn = !is_neighbour && !frame.tests_fill;
    if (is_neighbour) region.around.note(1, 0);
    if (was_withdrawn) frame.use_of_parts.note_used(bit_of(fault.part));
    const int error = take_run_from_shelf(frame, run.first, run.count, fault.write);
    const auto back = static_cast<uint32_t>(std::popcount(frame.present));
    if (back * kManyShare >= region.parts_per_block && is_passage(frame, back)) {
        end_fill_test(frame, true);
    }
    const uint32_t unused = region.parts_per_block - back;
    if (frame.counts_use && unused * kUnusedShare <= region.parts_per_block) {
        end_test(frame, true);
        end_fill_test(frame, true);
        frame.counts_use = false;
        flags = kDense;
    }
    if (!frame.counts_use && error == 0) {
        int rest_error = 0;  // what fails stays on the shelf
        for (const uint64_t parts : {frame.shelved & frame.dirty, frame.shelved & ~frame.dirty}) {
            for_each_run(parts, [&](uint32_t first, uint32_t count) {
                if (rest_error == 0) rest_error = take_run_from_shelf(frame, first, count, false);
            });
        }
        if (rest_error != 0) engine_failed(rest_error);
    }
    frames_.note_back_from_shelf(frame, was_withdrawn);
    block.leave(BlockState::kSparse, flags | (frame.dirty != 0 ? kDirty : 0), kSecondChance);
    frames_.note_progress();
    return error == 0 ? HANARE_STATUS_OK : engine_failed(error);
}

// Of what random accesses come to as a whole only the parts that are used stay, and of what streams
// come to where they use little of it.  As `split`.
Frame* Pager::split_if_useful(const Fault& fault) noexcept {
    Region& region = fault.region;
    if (!region.has_shelf()) return nullptr;
    if (fault.random) return split(fault);
    const uint32_t word = region.block(fault.index).load();
    const bool may_fill = fault.history == nullptr || (word & (kDirty | kDense)) != 0 ||
                          (word & kStored) == 0 || !is_overcommitted();
    if (may_fill || !region.fill.splits()) return nullptr;
    Frame* const sparse = split(fault);
    if (sparse != nullptr) sparse->tests_fill = true;
    return sparse;
}

// Whether a stream gets the part of a sparse block that it needs, and not all of it: it is on the
// shelf, or the block has the parts that are used.  A hint.
bool Pager::stays_sparse(const Fault& fault) noexcept {
    const Block& block = fault.region.block(fault.index);
    if (block_word::state(block.load()) != BlockState::kSparse) return false;
    Frame& frame = *fault.region.frame_of(block);
    const uint64_t shelved = std::atomic_ref(frame.shelved).load(std::memory_order_relaxed);
    return (shelved & bit_of(fault.part)) != 0 || has_its_parts(fault.region, frame);
}

// Where streams use little of each block.  A hint.
bool Pager::has_its_parts(Region& region, Frame& sparse) noexcept {
    if (!region.has_shelf() || !region.fill.is_low()) return false;
    const uint64_t held = std::atomic_ref(sparse.present).load(std::memory_order_relaxed) |
                          std::atomic_ref(sparse.shelved).load(std::memory_order_relaxed);
    return static_cast<uint32_t>(std::popcount(held)) * kFewShare >= region.parts_per_block &&
           region.fill.splits_sparse();
}

// The caller owns kInstalling of a block with a frame that is in no queue: it becomes sparse, with
// all parts on the shelf.  nullptr: it is as it was.
Frame* Pager::split(const Fault& fault) noexcept {
    Region& region = fault.region;
    Block& block = region.block(fault.index);
    Frame& whole = *region.frame_of(block);
    Frame* const sparse = frames_.acquire_sparse(*region.sparse_class);
    if (sparse == nullptr) return nullptr;
    const int error = engine_.install_writable(region.shelf_of(fault.index), whole.memory,
                                               region.block_bytes, {});
    if (error != 0) {
        engine_failed(error);
        frames_.release(*sparse, true);
        return nullptr;
    }
    sparse->region = &region;
    sparse->block = fault.index;
    std::atomic_ref(sparse->use).store(fault.use, std::memory_order_relaxed);
    store_mask(sparse->present, 0);
    store_mask(sparse->shelved, region.all_parts());
    sparse->neighbours = 0;
    sparse->use_of_parts = {};
    sparse->read_only_at_first = 0;
    sparse->leftovers = 0;
    sparse->counts_use = true;
    sparse->tests_fill = false;
    sparse->parts_passed = 0;
    begin_test(*sparse);
    store_mask(sparse->dirty, (block.load() & kDirty) != 0 ? region.all_parts() : 0);
    block.frame.store(sparse->index | Block::kSparseFrame, std::memory_order_relaxed);
    frames_.hand_over(whole, *sparse);
    frames_.requeue_sparse(*sparse, sparse->bytes);
    return sparse;
}

// The caller owns a transient state.  What the kernel refuses stays where it is, and may have been
// written to without a fault; false then.
bool Pager::put_on_shelf(Frame& frame) noexcept {
    Region& region = *frame.region;
    note_turn(frame);
    frame.tests_fill = false;  // from now on parts come back
    // Parts that are used over and over do not leave.
    note_use(frame, region, frame.block, frame.dirty != 0);
    const bool is_dense = (region.block(frame.block).load() & kDense) != 0;
    frame.counts_use = !is_dense || !region.dense.is_trusted();
    if (frame.counts_use) begin_test(frame);
    drop_leftovers(frame);
    const uint64_t leaving = frame.present & ~frame.use_of_parts.begin_turn();
    uint64_t moved = 0;
    for_each_run(leaving, [&](uint32_t first, uint32_t parts) {
        if (parts * region.part_bytes > kCopiedBytesMax) moved |= all_ones(parts) << first;
    });
    const bool all_moved = move_to_shelf(frame, moved);
    return copy_to_shelf(frame, leaving & ~moved) && all_moved;
}

bool Pager::move_to_shelf(Frame& frame, uint64_t parts) noexcept {
    Region& region = *frame.region;
    bool moved_all = true;
    for_each_run(parts, [&](uint32_t first, uint32_t count) {
        const uint64_t bytes = count * region.part_bytes;
        const uint64_t run = all_ones(count) << first;
        std::byte* const address = address_of_part(region, frame.block, first);
        const int error =
            engine_.withdraw(address, shelf_of_part(region, frame.block, first), bytes, {});
        if (error == 0) {
            store_mask(frame.present, frame.present & ~run);
            store_mask(frame.shelved, frame.shelved | run);
            return;
        }
        // It may have been written to without a fault.
        moved_all = false;
        engine_failed(error);
        region.add_dirty(region.bytes_of_parts(run & ~frame.dirty));
        store_mask(frame.dirty, frame.dirty | run);
        frame.read_only_at_first &= ~run;
        engine_.allow_writes(address, bytes);
    });
    return moved_all;
}

// Short runs: one interruption of the other processors for all of them, whatever their number.
bool Pager::copy_to_shelf(Frame& frame, uint64_t parts) noexcept {
    Region& region = *frame.region;
    int error = forbid_writes(frame, parts);
    std::array<sys::MemoryRange, kPartsMax / 2> copied;
    size_t count = 0;
    uint64_t copied_parts = 0;
    const auto drop_copied = [&] {
        const int drop_error = sys::advise_each(copied.data(), count, MADV_DONTNEED);
        HANARE_ASSERT(drop_error == 0);
        store_mask(frame.present, frame.present & ~copied_parts);
        store_mask(frame.shelved, frame.shelved | copied_parts);
        count = 0;
        copied_parts = 0;
    };
    for_each_run(parts, [&](uint32_t first, uint32_t run_parts) {
        if (error != 0) return;
        std::byte* const address = address_of_part(region, frame.block, first);
        const uint64_t bytes = run_parts * region.part_bytes;
        error = engine_.fill(shelf_of_part(region, frame.block, first), address, bytes);
        if (error != 0) return;
        copied[count++] = {address, bytes};
        copied_parts |= all_ones(run_parts) << first;
        if (region.bytes_of_parts(copied_parts) >= kTwiceBytesMax) drop_copied();
    });
    drop_copied();
    if (error != 0) {
        allow_writes(frame);
        engine_failed(error);
    }
    return error == 0;
}

// Of these parts, the dirty ones that are present.  What lies between them takes no harm, unless it
// is dirty, too, and stays.
int Pager::forbid_writes(const Frame& sparse, uint64_t parts) noexcept {
    const Region& region = *sparse.region;
    const uint64_t writable = sparse.dirty & sparse.present;
    const auto protect = [&](uint32_t first, uint32_t count) {
        return engine_.forbid_writes(address_of_part(region, sparse.block, first),
                                     count * region.part_bytes);
    };
    int error = 0;
    for_each_run(~(writable & ~parts), [&](uint32_t first, uint32_t count) {
        const uint64_t wanted = writable & (all_ones(count) << first);
        if (error != 0 || wanted == 0) return;
        const auto begin = static_cast<uint32_t>(std::countr_zero(wanted));
        const auto end = 64 - static_cast<uint32_t>(std::countl_zero(wanted));
        if (protect(begin, end - begin) == 0) return;
        // Something else is mapped between them.
        for_each_run(wanted, [&](uint32_t run_first, uint32_t run_count) {
            if (error == 0) error = protect(run_first, run_count);
        });
    });
    return error;
}

void Pager::drop_leftovers(Frame& sparse) noexcept {
    if (sparse.leftovers != 0) leftovers_.drop(std::exchange(sparse.leftovers, 0));
}

// Where that fails, too, the program has unmapped them; its next access will tell.
void Pager::allow_writes(const Frame& sparse) noexcept {
    const Region& region = *sparse.region;
    for_each_run(sparse.dirty & sparse.present, [&](uint32_t first, uint32_t parts) {
        engine_.allow_writes(address_of_part(region, sparse.block, first),
                             parts * region.part_bytes);
    });
}

// What goes: all, or what is on the shelf if something is.
hanare_status Pager::withdraw_sparse(Frame& frame, bool all, bool* dirty) noexcept {
    Region& region = *frame.region;
    Block& block = region.block(frame.block);
    if (frame.shelved != 0) note_turn(frame);
    frame.leaving = all || frame.shelved == 0 ? frame.held() : frame.shelved;
    frame.leaving_dirty = frame.dirty & frame.leaving;
    frame.unwritten = frame.leaving_dirty;
    *dirty = frame.unwritten != 0;
    const bool protects = (frame.unwritten & frame.present) != 0;
    const int error = protects ? forbid_writes(frame, frame.present) : 0;
    if (error != 0) {
        allow_writes(frame);
        frames_.requeue_sparse(frame, frame.bytes);
        block.leave(BlockState::kSparse);
        frames_.note_progress();
        region.leave();
        return engine_failed(error);
    }
    if (*dirty) block.leave(BlockState::kWriting);
    return HANARE_STATUS_OK;
}

void Pager::finish_sparse_write(Frame& frame, hanare_status status, Park park) noexcept {
    Region& region = *frame.region;
    Block& block = region.block(frame.block);
    if (status == HANARE_STATUS_OK) {
        const uint64_t written = frame.dirty & frame.leaving;
        const uint64_t bytes = region.bytes_of_parts(written);
        count(region.counters.write_backs);
        count(region.counters.written_bytes, bytes);
        region.remove_dirty(bytes);
        block.stored_parts |= written;
        store_mask(frame.dirty, frame.dirty & ~written);
        if (park != Park::kKeep) {
            note_use(frame, region, frame.block, true);
            give_up_parts(frame, kStored, 0);
            region.leave();
            return;
        }
    } else {
        count(region.counters.store_errors);
        allow_writes(frame);
    }
    const bool dirty = frame.dirty != 0;
    frames_.requeue_sparse(frame, frame.bytes);
    block.leave(BlockState::kSparse, status == HANARE_STATUS_OK ? kStored : 0, dirty ? 0 : kDirty);
    frames_.note_progress();
    region.leave();
}

// The owner leaves its transient state; what leaves is not dirty.
void Pager::give_up_parts(Frame& frame, uint32_t set, uint32_t clear) noexcept {
    note_leaving(frame);
    if (frame.leaving == frame.held()) return give_up_sparse(frame, set, clear);
    HANARE_ASSERT(frame.leaving == frame.shelved);
    Region& region = *frame.region;
    const uint64_t bytes = region.bytes_of_parts(frame.leaving);
    clear_shelf(region, frame.block);
    store_mask(frame.shelved, 0);
    region.remove_resident(bytes);
    frames_.requeue_sparse(frame, frame.bytes - bytes);
    frames_.refund(bytes);
    region.block(frame.block)
        .leave(BlockState::kSparse, set, clear | (frame.dirty != 0 ? 0 : kDirty));
    frames_.note_progress();
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
    drop_leftovers(frame);
    if (frame.shelved != 0) clear_shelf(region, frame.block);
    store_mask(frame.shelved, 0);
    region.remove_resident(frame.bytes);
    region.block(frame.block).leave(BlockState::kAbsent, set, kDirty | kSecondChance | clear);
    frames_.release(frame, true);
}

}  // namespace hanare::pager
