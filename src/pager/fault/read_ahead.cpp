// SPDX-License-Identifier: Apache-2.0
//
// Read-ahead: what the pager does for streams.
#include <algorithm>
#include <bit>

#include "base/units.hpp"
#include "pager/fault/pager.hpp"
#include "pager/fault/parts.hpp"
#include "pager/fault/sparse_frame.hpp"
#include "sys/clock.hpp"

namespace hanare::pager {

using block_word::kStored;
using UseAhead = FrameTable::UseAhead;

namespace {

// What keeps most devices busy; enough for short streams, and where others use the device.
constexpr uint64_t kQuickBytes = 4 * kMiB;
constexpr uint64_t kQuickBlocks = 8;  // of large blocks
constexpr uint64_t kQuickBytesMax = 8 * kMiB;
// The depth that is tried first: devices merge what is asked for at once, and are faster with it.
constexpr uint64_t kFirstBytes = 32 * kMiB;
constexpr uint64_t kFirstShare = 16;  // one part of the frames at most, if that is enough

uint64_t quick_bytes(uint64_t block_bytes) {
    return std::clamp(kQuickBlocks * block_bytes, kQuickBytes, kQuickBytesMax);
}

}  // namespace

ReadAheadDepth Pager::make_depth(uint64_t most_bytes, uint64_t frame_bytes,
                                 uint64_t block_bytes) noexcept {
    const uint64_t most =
        std::clamp<uint64_t>(most_bytes, block_bytes, FaultTransfers::kReadBytesMax);
    const uint64_t quick = std::min(most, quick_bytes(block_bytes));
    const uint64_t first = std::min(kFirstBytes, frame_bytes / kFirstShare);
    return ReadAheadDepth({.start_bytes = std::clamp(first, quick, most),
                           .start_beside_others_bytes = quick,
                           .least_bytes = quick / 4,
                           .most_bytes = most});
}

// For one stream.  Where all together have so much on its way, or there unused, that faults take
// some of it away again, no more than what is quick.
uint64_t Pager::read_ahead_bytes(const Region& region) noexcept {
    const uint64_t bytes = read_ahead_depth_.bytes();
    const uint64_t quick = quick_bytes(region.block_bytes);
    if (bytes <= quick || !frames_.is_beyond_ahead_share(transfers_.read_bytes())) return bytes;
    return quick;
}

uint32_t Pager::read_ahead_blocks(const Region& region, uint64_t bytes) const noexcept {
    if (read_ahead_blocks_ == 0) return 0;
    const uint64_t blocks = bytes >> region.block_shift;
    return static_cast<uint32_t>(std::clamp<uint64_t>(blocks, 1, read_ahead_blocks_));
}

// Whether the parts before the one that is wanted, in one direction or the other, are present: what
// takes turns with many others and so looks random may be a stream.  Only a hint, since the block
// is not owned.
bool Pager::is_in_run(const Fault& fault) noexcept {
    const Region& region = fault.region;
    if (block_word::state(region.block(fault.index).load()) != BlockState::kSparse) return false;
    Frame& frame = *region.frame_of(region.block(fault.index));
    const uint64_t present = std::atomic_ref(frame.present).load(std::memory_order_relaxed);
    const auto count = static_cast<uint32_t>(std::popcount(present));
    uint32_t run = kRunParts;
    if (region.has_shelf()) {
        // What is in use there stays for long, and much of a block comes together by and by.
        run = kRunPartsOnShelf;
        const uint64_t held =
            present | std::atomic_ref(frame.shelved).load(std::memory_order_relaxed);
        if (static_cast<uint32_t>(std::popcount(held)) * 2 > region.parts_per_block) return false;
    }
    // Where random accesses have left parts here and there, some lie beside each other by chance.
    if (run_count(present) * kRunParts > count) return false;
    return passage_to(present, fault.part).parts >= run;
}

// Of a sparse block; none of others.  A hint, too.
uint64_t Pager::present_parts(const Fault& fault) noexcept {
    const Region& region = fault.region;
    const Block& block = region.block(fault.index);
    if (block_word::state(block.load()) != BlockState::kSparse) return 0;
    return std::atomic_ref(region.frame_of(block)->present).load(std::memory_order_relaxed);
}

// None where parts that are here and there lie beside each other by chance.
Passage Pager::passage_of(const Fault& fault) noexcept {
    const uint64_t present = present_parts(fault);
    const auto count = static_cast<uint32_t>(std::popcount(present));
    if (run_count(present) * kPassageParts > count) return {};
    const Passage passage = passage_to(present, fault.part);
    return passage.parts < kPassageParts ? Passage{} : passage;
}

// Whether streams of the region may be served by parts.  In blocks of few parts one part is too
// much to tell that little was used.
bool Pager::may_sample(const Region& region) noexcept {
    return region.parts_per_block > kReadShare && read_ahead_blocks_ > 0 && is_overcommitted() &&
           region.advice.load(std::memory_order_relaxed) == HANARE_ADVICE_NORMAL;
}

bool Pager::is_sample(const Region& region, uint32_t index) noexcept {
    return region.density.samples(index, region.block_count) && may_sample(region);
}

void Pager::observe(Fault& fault) noexcept {
    Region& region = fault.region;
    const hanare_advice advice = region.advice.load(std::memory_order_relaxed);
    const bool may_be_sparse = region.parts_per_block > 1 && is_overcommitted();
    if (advice == HANARE_ADVICE_RANDOM) {
        fault.random = may_be_sparse;
        if (!fault.random) read_ahead_depth_.note_other_use();
        return;
    }
    const uint32_t beside = may_be_sparse ? passage_to(present_parts(fault), fault.part).parts : 0;
    const AccessHistory::Place place = {
        fault.index, uint64_t{fault.index} * region.parts_per_block + fault.part, beside};
    const bool in_run = may_be_sparse && is_in_run(fault);
    const bool by_chance = may_be_sparse && !in_run && fault.history->is_random(region);
    StreamTable::Begin begin = StreamTable::Begin::kCandidate;
    if (advice == HANARE_ADVICE_SEQUENTIAL) {
        begin = StreamTable::Begin::kAtOnce;
    } else if (by_chance && fault.history->expects_random(region, place)) {
        begin = StreamTable::Begin::kIgnore;
    }
    const bool by_parts = region.density.is_low() && may_sample(region);
    const StreamTable::Advice found = region.streams.observe(
        fault.index, fault.part, fault.write,
        {.blocks = region.blocks(),
         .block_count = region.block_count,
         .may_be_sparse = may_be_sparse,
         .depth_blocks = by_parts ? 0 : read_ahead_blocks(region, read_ahead_bytes(region)),
         .quick_blocks = read_ahead_blocks(region, quick_bytes(region.block_bytes)),
         .by_parts = by_parts,
         .parts_per_block = region.parts_per_block,
         .first_depth = region.has_shelf() ? 1u : 4u,
         .by_chance = by_chance,
         .shared_blocks = static_cast<uint32_t>(frames_.ahead_bytes_wanted(region.block_bytes) >>
                                                region.block_shift),
         .beside = beside},
        begin);
    const bool random = fault.history->note(region, place, found.continues, in_run);
    if (random && !found.continues) read_ahead_depth_.note_other_use();
    if (found.parts != 0 && !found.part) {
        if (by_parts && ends_parts(region, found)) {
            region.repeats.begin_anew();
            region.density.note(true);
        }
        const bool sample = !by_parts && is_sample(region, fault.index);
        if ((by_parts || sample) && is_passed_through(region, found.parts)) {
            note_passed(fault);
        } else if (by_parts || sample) {
            fault.use = by_parts ? StreamUse::kParts : StreamUse::kSample;
        }
    }
    const bool by_choice = may_be_sparse && advice != HANARE_ADVICE_SEQUENTIAL;
    fault.random = fault.use != StreamUse::kNone ||
                   (by_choice && (found.part || (random && !found.continues)));
    // Without a shelf what comes part by part costs more than what is not needed of the block.
    fault.alone = by_choice && !found.continues && region.has_shelf();
    if (found.count > 0) {
        read_ahead_depth_.note(found.count * region.block_bytes, 0, sys::now_ns());
        read_ahead(fault, found);
    }
    const bool comes_along = found.along != 0 && fault.use == StreamUse::kNone &&
                             !region.has_shelf() && may_work_in_runs(region);
    if (comes_along) {
        fault.along = found.along;
        fault.along_written = fault.write && found.left_written;
    }
    if (found.behind == StreamTable::kNone) return;
    mark_behind(region, found.behind);
    for (uint32_t i = 1; comes_along && i < FrameRun::most_of(region.block_bytes); ++i) {
        const uint32_t next = found.behind + i * static_cast<uint32_t>(found.along);
        if (next >= region.block_count || !block_word::resident(region.block(next).load())) return;
        if (!std::atomic_ref(region.frame_of(region.block(next))->came_along)
                 .load(std::memory_order_relaxed)) {
            return;
        }
        mark_behind(region, next);
    }
}

// The stream has passed it.
void Pager::mark_behind(Region& region, uint32_t index) noexcept {
    const Block& behind = region.block(index);
    const uint32_t word = behind.load();
    if (block_word::resident(word)) {
        frames_.mark_drop(*region.frame_of(behind), region, index);
    } else if (block_word::state(word) == BlockState::kSparse) {
        // What was never written back costs little by parts, so it tells at once.
        if ((word & kStored) == 0) note_use(*region.frame_of(behind), region, index, true);
        // What the stream has not used of it makes room for the next blocks.
        if (region.fill.is_low()) frames_.mark_drop(*region.frame_of(behind), region, index);
    }
}

// A fault costs about as much as to map what is here already.  So many blocks have come.
void Pager::bring_along(const Fault& fault, uint32_t come) noexcept {
    Region& region = fault.region;
    const uint32_t most = FrameRun::most_of(region.block_bytes);
    for (uint32_t i = come; i < most && fault.along != 0; ++i) {
        const uint32_t index = fault.index + i * static_cast<uint32_t>(fault.along);
        if (!begin_staged(region, index) || !accept_staged(region, index)) return;
        std::atomic_ref(region.frame_of(region.block(index))->came_along)
            .store(true, std::memory_order_relaxed);
        if (install(region, index, fault.along_written) != HANARE_STATUS_OK) return;
    }
}

// Whether a stream that has needed these parts of a block in one go will need all of them.  One
// that uses little of a block leaves parts beside each other, too, but from several goes.
bool Pager::is_passed_through(const Region& region, uint64_t parts) noexcept {
    const auto count = static_cast<uint32_t>(std::popcount(parts));
    return count >= region.parts_per_block / kManyShare ||
           (count >= kRunParts && run_count(parts) <= 2);
}

// Whether blocks of which these parts are needed in each of so many passes are better had whole.
bool Pager::is_much(const Region& region, uint64_t parts, bool written, uint32_t passes) noexcept {
    const uint32_t share = written ? kWrittenShare : kReadShare;
    return static_cast<uint32_t>(std::popcount(parts)) * share >= region.parts_per_block * passes;
}

// Whether these parts of all blocks of the region would stay in memory from one pass to the next.
bool Pager::fits_by_parts(const Region& region, uint64_t parts) noexcept {
    const uint64_t blocks = region.is_adopted() ? region.used_blocks.load(std::memory_order_relaxed)
                                                : region.block_count;
    return region.bytes_of_parts(parts) * blocks <=
           frames_.frame_budget_bytes() / kRepeatedParts * (kRepeatedParts - 1);
}

// A stream that is served by parts needs so much of its blocks, each time that it comes to them,
// that they are better had as a whole.
bool Pager::ends_parts(const Region& region, const StreamTable::Advice& found) noexcept {
    const uint64_t parts = found.left_parts;
    if (!is_much(region, parts, found.left_written, 1)) return false;
    const uint32_t passes = fits_by_parts(region, parts) ? region.repeats.passes() : 1;
    return is_much(region, parts, found.left_written, passes);
}

// The stream goes through all of a block that it has met by parts.
void Pager::note_passed(const Fault& fault) noexcept {
    Region& region = fault.region;
    if (region.density.is_low()) {
        region.repeats.begin_anew();
    } else {
        const Block& block = region.block(fault.index);
        if (block_word::state(block.load()) != BlockState::kSparse) return;
        const std::atomic_ref use(region.frame_of(block)->use);
        if (use.exchange(StreamUse::kParts, std::memory_order_relaxed) == StreamUse::kParts) return;
    }
    region.density.note(true);
}

// How much of a sample streams have used, now that they are done with it.
void Pager::note_use(Frame& sparse, Region& region, uint32_t index, bool written) noexcept {
    const std::atomic_ref use(sparse.use);
    if (use.load(std::memory_order_relaxed) != StreamUse::kSample) return;
    // Streams that are served by parts have used it in several goes since.
    if (region.density.is_low()) return;
    const uint64_t present = std::atomic_ref(sparse.present).load(std::memory_order_relaxed) |
                             std::atomic_ref(sparse.shelved).load(std::memory_order_relaxed);
    if (present == 0) return;  // the frame has gone to another block meanwhile
    if (use.exchange(StreamUse::kParts, std::memory_order_relaxed) != StreamUse::kSample) return;
    const uint32_t passes = region.repeats.note(index, present);
    region.density.note(
        is_much(region, present, written, fits_by_parts(region, present) ? passes : 1));
}

// Starts the reads that a stream wants; and with them that of the block whose fault has told, so
// that it does not wait until they are started.
void Pager::read_ahead(const Fault& fault, const StreamTable::Advice& wanted) noexcept {
    Region& region = fault.region;
    Batch batch;
    if (fault.use == StreamUse::kNone) start_ahead(region, fault.index, batch);
    uint32_t next = wanted.first;
    uint32_t left = wanted.count;
    for (; left > 0; --left, next += static_cast<uint32_t>(wanted.step)) {
        if (is_sample(region, next) || !frames_.may_fill_ahead(region.block_bytes)) continue;
        const FillStart start = start_ahead(region, next, batch);
        if (start == FillStart::kNoFrame) break;
        if (start == FillStart::kForKeeper) leave_to_keeper(region, next, 1, wanted.step);
    }
    start_batch(batch);
    if (left > 0) leave_to_keeper(region, next, left, wanted.step);
}

// What needs more than a fault should do: evicting what is dirty, completing sparse blocks.
void Pager::leave_to_keeper(Region& region, uint32_t first, uint32_t count, int32_t step) noexcept {
    if (!works_ahead_ || !frames_.may_fill_ahead(count * region.block_bytes)) return;
    const auto end = first + count * static_cast<uint32_t>(step);
    while (first != end) {
        uint32_t next = first;
        uint32_t run = 0;
        for (; next != end && !is_sample(region, next); ++run) {
            next += static_cast<uint32_t>(step);
        }
        if (run > 0) request_read_ahead(region, first, run, step);
        first = next == end ? end : next + static_cast<uint32_t>(step);
    }
}

Pager::FillStart Pager::start_ahead(Region& region, uint32_t index, Batch& batch) noexcept {
    if (!transfers_.has_room_for_reads(batch.bytes + region.block_bytes))
        return FillStart::kNoFrame;
    if (batch.count == batch.frames.size()) start_batch(batch);
    Frame*& frame = batch.frames[batch.count];
    FillStart start = FillStart::kNoFrame;
    do {
        start = start_fill(region, index, Reader::kFault, &frame);
    } while (start == FillStart::kNoFrame && evict_dropped());
    if (start == FillStart::kStarted) {
        ++batch.count;
        batch.bytes += region.block_bytes;
    }
    return start;
}

void Pager::start_batch(Batch& batch) noexcept {
    std::array<store::IoRequest*, FaultTransfers::kBatch> requests{};
    for (size_t i = 0; i < batch.count; ++i) requests[i] = &batch.frames[i]->io;
    transfers_.start(requests.data(), batch.count);
    batch.count = 0;
    batch.bytes = 0;
}

// What a stream has left behind and needs no write-back makes room for what it wants next, in the
// order in which it will come.
bool Pager::evict_dropped() noexcept {
    Frame* frame = is_overcommitted() ? frames_.select_dropped() : nullptr;
    if (frame == nullptr) return false;
    FrameRun run(*frame);
    const Together together = withdraw_run(*frame, FrameQueue::kDrop, Park::kFree, false, run);
    if (together == Together::kFailed) return false;
    const bool goes_up = frame == &run.last();
    bool any = false;
    for (uint32_t i = 0; i < run.count(); ++i) {
        Frame& each = run[goes_up ? run.count() - 1 - i : i];
        count(each.region->counters.evictions_inline);
        bool dirty = false;
        if (together == Together::kNo && withdraw(each, Park::kFree, &dirty) != HANARE_STATUS_OK) {
            continue;
        }
        finish_clean(each, Park::kFree);
        any = true;
    }
    return any;
}

Pager::FillStart Pager::start_fill(Region& region, uint32_t index, Reader reader,
                                   Frame** frame) noexcept {
    Block& block = region.block(index);
    const uint32_t word = block.load();
    const bool sparse = block_word::state(word) == BlockState::kSparse;
    if ((block_word::state(word) != BlockState::kAbsent && !sparse) || (word & kStored) == 0) {
        return FillStart::kNothingToDo;
    }
    const bool by_fault = reader == Reader::kFault;
    if (sparse && has_its_parts(region, *region.frame_of(block))) return FillStart::kNothingToDo;
    if (sparse && by_fault) return FillStart::kForKeeper;
    hanare_status failure = HANARE_STATUS_OK;
    // Read-ahead does not live on its own earlier work, which is needed sooner.
    Frame* found = take_frame(*region.frame_class, UseAhead::kNever, true, &failure);
    if (found == nullptr) return FillStart::kNoFrame;
    // Before the look at the region: its end either waits for this read, or is seen.
    if (by_fault) region.blocks_in_transfer.fetch_add(1, std::memory_order_seq_cst);
    const BlockState target = by_fault ? BlockState::kReading
                              : sparse ? BlockState::kExtending
                                       : BlockState::kFilling;
    if (region.is_closing() || !block.try_enter(word, target)) {
        if (by_fault) region.blocks_in_transfer.fetch_sub(1, std::memory_order_seq_cst);
        frames_.release(*found, false);
        return FillStart::kNothingToDo;
    }
    if (sparse && FrameTable::is_held(region, index)) {
        frames_.release(*found, false);
        block.leave(BlockState::kSparse);
        frames_.note_progress();
        return FillStart::kNothingToDo;
    }
    if (sparse) {
        // Its present parts stay in use until the others have come.
        region.frame_of(block)->in_keeper = true;
        found->region = &region;
        found->block = index;
    } else {
        attach_frame(region, index, *found);
    }
    found->zeroed = false;
    note_read();
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
    Block& block = region.block(frame.block);
    if (status != HANARE_STATUS_OK) {
        count(region.counters.store_errors);
    } else {
        count(region.counters.prefetch_reads);
        count(region.counters.read_bytes, region.block_bytes);
    }
    // Whoever needs a block that failed will read it again and report.
    if (block_word::state(block.load()) == BlockState::kExtending) {
        Frame& sparse = *region.frame_of(block);
        sparse.in_keeper = false;
        if (status == HANARE_STATUS_OK) {
            try_to_end_fill_test(sparse);  // or never: its frame goes
            status = finish_read(region, frame.block, frame, sparse.dirty);
        }
        finish_completion(sparse, frame, status);
    } else {
        const bool by_fault = block_word::state(block.load()) == BlockState::kReading;
        if (status == HANARE_STATUS_OK) {
            frame.unverified = true;
            frames_.enqueue(frame, FrameQueue::kAhead);
            block.leave(BlockState::kStaged);
            frames_.note_progress();
        } else {
            give_up_frame(frame);
        }
        if (by_fault) region.blocks_in_transfer.fetch_sub(1, std::memory_order_seq_cst);
    }
    region.leave();
}

void Pager::abandon_fill(Frame& frame) noexcept {
    Region& region = *frame.region;
    give_up_frame(frame);
    region.blocks_in_transfer.fetch_sub(1, std::memory_order_seq_cst);
    region.leave();
}

void Pager::finish_transfers(Region& region) noexcept {
    transfers_.wait_while(
        [&] { return region.blocks_in_transfer.load(std::memory_order_seq_cst) > 0; });
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
