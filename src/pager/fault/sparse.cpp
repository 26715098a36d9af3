// SPDX-License-Identifier: Apache-2.0
//
// Pager, sparse blocks: parts that are fetched alone, for random accesses and for streams that use
// little of each block.  Their content lives in the region only; clean parts are write-protected
// copies of the store, dirty ones are written back from where they are.
//
// Where the region has a shelf, its sparse blocks are evicted part by part, as a clock does it:
// when its turn comes, a block's mapped parts are withdrawn to the shelf, except those that came
// back from there lately; those that are used come back, and those that are still there at the next
// turn go.  Neighbours that are read along with a part begin there.  A whole block that was
// withdrawn, or of which a stream may use little, becomes sparse in the same way when one of its
// parts is used.
//
// Whoever enters kExtending has the room that it needs, so it never waits for the keeper.
#include <bit>
#include <cstring>

#include "base/assert.hpp"
#include "base/sanitizers.hpp"
#include "pager/fault/checksum.hpp"
#include "pager/fault/pager.hpp"
#include "pager/fault/parts.hpp"
#include "sys/memory.hpp"

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

uint64_t bit_of(uint32_t part) { return uint64_t{1} << part; }

// The owner's; others may look, too (residency.hpp).
void store_mask(uint64_t& mask, uint64_t parts) {
    std::atomic_ref(mask).store(parts, std::memory_order_release);
}

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

// Whether the block is in dense use is found anew.  The owner's.
void begin_test(Frame& frame) {
    std::atomic<uint32_t>& word = frame.region->block(frame.block).word;
    frame.tests_use = (word.fetch_and(~kDense, std::memory_order_relaxed) & kDense) != 0;
}

void end_test(Frame& frame, bool is_dense) {
    if (!std::exchange(frame.tests_use, false)) return;
    frame.region->dense.note(is_dense);
    if (is_dense) {
        frame.region->block(frame.block).word.fetch_or(kDense, std::memory_order_relaxed);
    }
}

void end_fill_test(Frame& frame, bool by_half) {
    if (std::exchange(frame.tests_fill, false)) frame.region->fill.note(by_half);
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

// Whether what is used of it is not here and there.
bool is_passage(const Frame& frame, uint32_t used) {
    constexpr uint32_t kLeastParts = 4;
    return used >= kLeastParts && run_count(frame.present) <= 2;
}

// At the end of a block's turn, in memory or on the shelf.
void note_turn(Frame& frame) {
    const auto used = static_cast<uint32_t>(std::popcount(frame.present));
    end_test(frame, used * kStillDenseShare >= frame.region->parts_per_block);
    // A stream may not have come to its end.
    if (is_passage(frame, used) && used * 2 < frame.region->parts_per_block) {
        frame.tests_fill = false;
    }
    end_fill_test(frame, used * 2 >= frame.region->parts_per_block);
}

void clear_shelf(const Region& region, uint32_t index) {
    sys::advise(region.shelf_of(index), region.block_bytes, MADV_DONTNEED);
}

std::byte* address_of_part(const Region& region, uint32_t index, uint32_t part) {
    return region.address_of(index) + part * region.part_bytes;
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
        frame->counts_use = true;
        frame->tests_use = false;
        frame->tests_fill = false;
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

// The caller owns a transient state; the parts are on the shelf, and all dirty or all clean.
int Pager::take_run_from_shelf(Frame& frame, uint32_t first, uint32_t parts, bool write) noexcept {
    Region& region = *frame.region;
    const uint64_t start = first * region.part_bytes;
    const uint64_t bytes = parts * region.part_bytes;
    const uint64_t run = all_ones(parts) << first;
    std::byte* const address = region.address_of(frame.block) + start;
    std::byte* const shelf = region.shelf_of(frame.block) + start;
    const bool was_dirty = (frame.dirty & run) != 0;
    HANARE_ASSERT(!was_dirty || (frame.dirty & run) == run);
    // Of several at least some are used by chance.
    const bool may_expect =
        parts == 1 && !write && !was_dirty && is_written_easily(region, frame.block);
    bool writable = write || was_dirty || (may_expect && region.first_writes.are_expected());
    bool tried = false;
    const int error = retry_after_evictions([&] {
        // The last try may have mapped it for a moment, in which it was written to.
        if (std::exchange(tried, true)) writable = true;
        return writable ? engine_.install_writable(address, shelf, bytes, {})
                        : engine_.install_read_only(address, shelf, bytes, &writable);
    });
    if ((writable || error != 0) && !was_dirty) {
        region.add_dirty(bytes);
        store_mask(frame.dirty, frame.dirty | run);
    }
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

bool Pager::is_whole_better(const Fault& fault) noexcept {
    const uint32_t word = fault.region.block(fault.index).load();
    const BlockState state = block_word::state(word);
    if ((word & kDense) == 0 || !fault.region.has_shelf() || fault.use != StreamUse::kNone) {
        return false;
    }
    return (state == BlockState::kAbsent || state == BlockState::kStaged) &&
           fault.region.dense.is_trusted();
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
    sparse->counts_use = true;
    sparse->tests_fill = false;
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
    bool moved_all = true;
    note_turn(frame);
    // Parts that are used over and over do not leave.
    note_use(frame, region, frame.block, frame.dirty != 0);
    const bool is_dense = (region.block(frame.block).load() & kDense) != 0;
    frame.counts_use = !is_dense || !region.dense.is_trusted();
    if (frame.counts_use) begin_test(frame);
    const uint64_t spared = frame.use_of_parts.begin_turn();
    for_each_run(frame.present & ~spared, [&](uint32_t first, uint32_t parts) {
        const uint64_t start = first * region.part_bytes;
        const uint64_t bytes = parts * region.part_bytes;
        const uint64_t run = all_ones(parts) << first;
        std::byte* const address = region.address_of(frame.block) + start;
        const int error =
            engine_.withdraw(address, region.shelf_of(frame.block) + start, bytes, {});
        if (error == 0) {
            store_mask(frame.present, frame.present & ~run);
            store_mask(frame.shelved, frame.shelved | run);
            return;
        }
        moved_all = false;
        engine_failed(error);
        region.add_dirty(region.bytes_of_parts(run & ~frame.dirty));
        store_mask(frame.dirty, frame.dirty | run);
        frame.read_only_at_first &= ~run;
        engine_.allow_writes(address, bytes);
    });
    return moved_all;
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
    const int error = install(region.address_of(fault.index), wanted, writable);
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
    int error = forbid_writes(sparse);
    if (error == 0) {
        const base::UnseenByTsan unseen;
        copy(address, kept & sparse.present);
        if (sparse.shelved != 0) copy(region.shelf_of(index), kept & sparse.shelved);
        if (sparse.present != 0) error = engine_.discard(address, region.block_bytes);
    }
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

int Pager::forbid_writes(const Frame& sparse) noexcept {
    const Region& region = *sparse.region;
    int error = 0;
    for_each_run(sparse.dirty & sparse.present, [&](uint32_t first, uint32_t parts) {
        if (error != 0) return;
        error = engine_.forbid_writes(address_of_part(region, sparse.block, first),
                                      parts * region.part_bytes);
    });
    return error;
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
    const int error = protects ? forbid_writes(frame) : 0;
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
    if (frame.shelved != 0) clear_shelf(region, frame.block);
    store_mask(frame.shelved, 0);
    region.remove_resident(frame.bytes);
    region.block(frame.block).leave(BlockState::kAbsent, set, kDirty | kSecondChance | clear);
    frames_.release(frame, true);
}

}  // namespace hanare::pager
