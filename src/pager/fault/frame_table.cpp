// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/frame_table.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <sys/mman.h>
#include <utility>

#include "base/units.hpp"
#include "pager/fault/holds.hpp"
#include "pager/fault/region.hpp"
#include "sys/futex.hpp"

namespace hanare::pager {

namespace {

// Protected blocks may fill this part of what is mapped; the rest is always on probation.
constexpr uint64_t kProtectedNumerator = 3;
constexpr uint64_t kProtectedDenominator = 4;
// Of what is protected, one byte for so many that come is tested: some blocks at once, for what has
// come of late.
constexpr uint64_t kTestedShare = 8;
constexpr uint32_t kTestsMax = 4;
constexpr uint64_t kUntestedBytesMax = 64 << 20;
// Behind so many sparse blocks a whole one is looked for.
constexpr uint32_t kSparseDroppedMax = 16;
// Read-ahead that nobody used may fill one part in kAheadShare of the budget.
constexpr uint64_t kAheadShare = AheadShare::kMost;
// What is read ahead at most.
constexpr uint64_t kAheadMost = 2;
// What is kept free or clean ahead of need: one part in kLowWaterShare of the budget.
constexpr uint64_t kLowWaterShare = 16;
// Parts leave so much room for the descriptors of sparse blocks.
constexpr uint64_t kDescriptorsBytes = 4096;

// What is kept free is less by so much where single parts are what is needed, which is so unless
// whole blocks are more than one of so many needs.
constexpr uint64_t kPartsLowWaterShare = 8;
constexpr uint32_t kPartsPerWhole = 16;
constexpr uint32_t kWholeScoreMany = 4 * kPartsPerWhole;
constexpr uint32_t kWholeScoreMax = 16 * kPartsPerWhole;

// The transient state in which a block leaves; kAbsent where it cannot, or not from there.
BlockState state_of_victim(uint32_t word, FrameQueue queue) {
    const BlockState state = block_word::state(word);
    if (block_word::resident(word) || state == BlockState::kSparse) {
        return BlockState::kWithdrawing;
    }
    if (state != BlockState::kStaged) return BlockState::kAbsent;
    // Its write-back has failed, or it was not written yet.
    if ((word & block_word::kDirty) != 0) return BlockState::kWriting;
    return queue == FrameQueue::kHidden ? BlockState::kInstalling : BlockState::kAbsent;
}

uint32_t chunk_frames(const FrameClass& frame_class) {
    return static_cast<uint32_t>(std::max<uint64_t>(1, kHugePageBytes / frame_class.block_bytes));
}

}  // namespace

void FrameTable::refund_region(FrameClass& frame_class, uint64_t blocks,
                               uint64_t table_bytes) noexcept {
    {
        const sys::LockGuard guard(lock_);
        metadata_bytes_ -= table_bytes;
        frame_class.blocks -= blocks;
        --frame_class.regions;
    }
    note_progress();
}

void FrameTable::adjust_region(FrameClass& frame_class, int64_t blocks,
                               int64_t table_bytes) noexcept {
    {
        const sys::LockGuard guard(lock_);
        metadata_bytes_ -= std::min(adopted_table_bytes_, adopted_tables_max_);
        adopted_table_bytes_ += static_cast<uint64_t>(table_bytes);
        metadata_bytes_ += std::min(adopted_table_bytes_, adopted_tables_max_);
        frame_class.blocks += static_cast<uint64_t>(blocks);
    }
    if (table_bytes < 0) note_progress();
}

int FrameTable::watch_arenas(Engine& engine) noexcept {
    if (engine.copies()) return 0;  // the kernel gives slots their pages
    const sys::LockGuard guard(lock_);
    for (const FrameClass& frame_class : classes_) {
        if (!frame_class.open()) continue;
        const int error =
            engine.watch_again(frame_class.arena.address(), frame_class.arena.bytes());
        if (error != 0) return error;
    }
    return 0;
}

Frame* FrameTable::acquire(FrameClass& frame_class, UseAhead use_ahead, bool may_create) noexcept {
    Frame* const frame = find_or_create(frame_class, use_ahead, may_create);
    if (frame == nullptr) return nullptr;
    const sys::LockGuard guard(lock_);
    whole_score_ = std::min(whole_score_ + kPartsPerWhole, kWholeScoreMax);
    given_bytes_ += frame->bytes;
    return frame;
}

Frame* FrameTable::find_or_create(FrameClass& frame_class, UseAhead use_ahead,
                                  bool may_create) noexcept {
    for (;;) {
        Frame* foreign = nullptr;
        {
            const sys::LockGuard guard(lock_);
            if (Frame* frame = take_free(frame_class)) return frame;
            if (Frame* frame = may_create ? create(frame_class) : nullptr) return frame;
            // What fits in the budget is not given up because its frames are on their way.
            const bool may_reclaim = use_ahead == UseAhead::kAlways || !is_populating();
            Frame* frame = may_reclaim ? take_reclaimable(use_ahead) : nullptr;
            if (frame != nullptr && frame->frame_class == &frame_class) return frame;
            foreign = frame != nullptr ? frame : take_foreign_free(&frame_class);
        }
        if (foreign == nullptr) return nullptr;
        make_bare(*foreign);  // its bytes now allow another frame of our size
    }
}

bool FrameTable::is_beyond_ahead_share(uint64_t bytes) noexcept {
    const sys::LockGuard guard(lock_);
    return ahead_bytes_ + bytes > budget_bytes_ / kAheadShare;
}

bool FrameTable::may_fill_ahead(uint64_t bytes) noexcept {
    const sys::LockGuard guard(lock_);
    if (ahead_bytes_ + bytes <= budget_bytes_ / kAheadMost) return true;
    // As after a long hanare_prefetch.  What the keeper has withdrawn may be in use.
    const uint64_t used = used_bytes_ + metadata_bytes_;
    const uint64_t unused = used < budget_bytes_ ? budget_bytes_ - used : 0;
    if (free_bytes_ + unused >= bytes + unlocked_low_water_bytes()) return true;
    ahead_share_.note_unused(bytes);
    return false;
}

uint64_t FrameTable::ahead_bytes_wanted(uint64_t block_bytes) noexcept {
    const sys::LockGuard guard(lock_);
    ahead_share_.adapt(given_bytes_, budget_bytes_, block_bytes);
    return ahead_share_.bytes_of(budget_bytes_);
}

// Staged and clean, so that it needs no eviction.  Of what was read ahead the newest, which is
// needed last, unless nobody seems to need the oldest.
Frame* FrameTable::take_reclaimable(UseAhead use_ahead) noexcept {
    const bool many_ahead = ahead_bytes_ > budget_bytes_ / kAheadShare;
    if (use_ahead != UseAhead::kNever && is_ahead_stale()) {
        if (Frame* frame = take_staged(ahead_, false)) return frame;
    }
    // Before what the keeper has withdrawn, which may be in use.
    if (use_ahead != UseAhead::kNever && many_ahead) {
        if (Frame* frame = take_staged(ahead_, true)) return frame;
    }
    if (Frame* frame = take_staged(inactive_, false)) return frame;
    return use_ahead == UseAhead::kAlways ? take_staged(ahead_, false) : nullptr;
}

bool FrameTable::give_up_stale() noexcept {
    Frame* frame = nullptr;
    {
        const sys::LockGuard guard(lock_);
        if (is_ahead_stale()) frame = take_staged(ahead_, false);
    }
    if (frame == nullptr) return false;
    make_bare(*frame);
    note_progress();
    return true;
}

// Since the oldest was read ahead all of the budget could have been filled anew.
bool FrameTable::is_ahead_stale() noexcept {
    const Frame* const oldest = ahead_.front();
    return oldest != nullptr && given_bytes_ - oldest->given_before_bytes > budget_bytes_;
}

bool FrameTable::reserve(uint64_t bytes, UseAhead use_ahead) noexcept {
    for (;;) {
        Frame* whole = nullptr;
        {
            const sys::LockGuard guard(lock_);
            if (used_bytes_ + metadata_bytes_ + bytes + kDescriptorsBytes <= budget_bytes_) {
                used_bytes_ += bytes;
                given_bytes_ += bytes;
                if (whole_score_ > 0) --whole_score_;
                return true;
            }
            whole = take_foreign_free(nullptr);
            if (whole == nullptr) whole = take_reclaimable(use_ahead);
        }
        if (whole == nullptr) return false;
        make_bare(*whole);
    }
}

void FrameTable::refund(uint64_t bytes) noexcept {
    {
        const sys::LockGuard guard(lock_);
        used_bytes_ -= bytes;
    }
    note_progress();
}

Frame* FrameTable::acquire_sparse(FrameClass& sparse_class) noexcept {
    const sys::LockGuard guard(lock_);
    if (Frame* frame = sparse_class.bare.front()) {
        take_out(*frame);
        return frame;
    }
    if (sparse_class.created == sparse_class.capacity ||
        used_bytes_ + metadata_bytes_ + sizeof(Frame) > budget_bytes_) {
        return nullptr;
    }
    Frame* frame = new_frame(sparse_class);
    frame->sparse = true;
    return frame;
}

void FrameTable::requeue_sparse(Frame& frame, uint64_t bytes) noexcept {
    const sys::LockGuard guard(lock_);
    if (frame.queue != FrameQueue::kNone) take_out(frame);
    frame.bytes = bytes;
    put(frame, FrameQueue::kProbation);
}

void FrameTable::resize_sparse(Frame& frame, uint64_t bytes) noexcept {
    const sys::LockGuard guard(lock_);
    frame.bytes = bytes;
    if (frame.queue == FrameQueue::kDrop) take_out(frame);
    if (frame.queue == FrameQueue::kNone) {
        put(frame, FrameQueue::kProbation);
    } else {
        count_again(frame);
    }
}

void FrameTable::note_missed() noexcept {
    const sys::LockGuard guard(lock_);
    shelf_share_.note_need();
}

void FrameTable::note_back_from_shelf(Frame& frame, bool was_withdrawn) noexcept {
    const sys::LockGuard guard(lock_);
    if (was_withdrawn) shelf_share_.note_return();
    if (frame.queue != FrameQueue::kHidden && frame.queue != FrameQueue::kDrop) return;
    if (frame.shelved != 0) return count_again(frame);
    take_out(frame);
    put(frame, FrameQueue::kProbation);
}

// Of sparse blocks that are hidden, only what is on the shelf.
uint64_t FrameTable::bytes_in_queue(const Frame& frame) noexcept {
    const bool by_parts = frame.sparse && frame.queue == FrameQueue::kHidden;
    return by_parts ? frame.region->bytes_of_parts(frame.shelved) : frame.bytes;
}

void FrameTable::count_again(Frame& frame) noexcept {
    const uint64_t before = std::exchange(frame.counted_bytes, bytes_in_queue(frame));
    if (uint64_t* bytes = bytes_of(frame.queue)) *bytes += frame.counted_bytes - before;
}

void FrameTable::hand_over(Frame& whole, Frame& sparse) noexcept {
    const sys::LockGuard guard(lock_);
    if (whole.queue != FrameQueue::kNone) take_out(whole);
    whole.region = nullptr;
    whole.bare = true;
    put(whole, FrameQueue::kBare);
    sparse.bytes = whole.bytes;
}

void FrameTable::release(Frame& frame, bool bare) noexcept {
    if (bare || frame.sparse) {
        make_bare(frame);
    } else {
        const sys::LockGuard guard(lock_);
        if (frame.queue != FrameQueue::kNone) take_out(frame);
        frame.region = nullptr;
        frame.zeroed = false;
        if (!leave_run(frame, true)) put(frame, FrameQueue::kFree);
    }
    note_progress();
}

void FrameTable::give_up_unused(const FrameClass& wanted) noexcept {
    for (;;) {
        Frame* frame = nullptr;
        {
            const sys::LockGuard guard(lock_);
            for (FrameClass& frame_class : classes_) {
                const bool unused = &frame_class != &wanted && frame_class.regions == 0;
                if (frame == nullptr && unused && frame_class.open())
                    frame = take_free(frame_class);
            }
        }
        if (frame == nullptr) return;
        make_bare(*frame);
    }
}

void FrameTable::trim() noexcept {
    for (;;) {
        Frame* frame = nullptr;
        {
            const sys::LockGuard guard(lock_);
            if (used_bytes_ + metadata_bytes_ <= budget_bytes_) return;
            for (FrameClass& frame_class : classes_) {
                if (frame == nullptr && frame_class.open()) frame = take_free(frame_class);
            }
            if (frame == nullptr) frame = take_staged(inactive_, false);
            if (frame == nullptr) frame = take_staged(ahead_, false);
        }
        if (frame == nullptr) return;
        make_bare(*frame);
    }
}

uint64_t FrameTable::excess_bytes() noexcept {
    const sys::LockGuard guard(lock_);
    const uint64_t used = used_bytes_ - nearly_free_bytes_ + metadata_bytes_;
    return used > budget_bytes_ ? used - budget_bytes_ : 0;
}

void FrameTable::make_bare(Frame& frame) noexcept {
    if (!frame.sparse) sys::advise(frame.memory, frame.bytes, MADV_DONTNEED);
    const sys::LockGuard guard(lock_);
    if (frame.queue != FrameQueue::kNone) take_out(frame);
    frame.region = nullptr;
    frame.bare = true;
    used_bytes_ -= frame.bytes;
    if (frame.sparse) frame.bytes = 0;
    put(frame, FrameQueue::kBare);
}

void FrameTable::empty_slot(Frame& frame) noexcept {
    {
        const sys::LockGuard guard(lock_);
        SpareSlots& spare = frame.frame_class->spare;
        if (spare.filled < spare.count) {
            std::swap(frame.memory, spare.slots[spare.filled++]);
            return;
        }
    }
    sys::advise(frame.memory, frame.bytes, MADV_DONTNEED);
}

void FrameTable::refill_slot(Frame& frame) noexcept {
    const sys::LockGuard guard(lock_);
    SpareSlots& spare = frame.frame_class->spare;
    if (spare.filled > 0) std::swap(frame.memory, spare.slots[--spare.filled]);
}

Frame* FrameTable::take_free(FrameClass& frame_class) noexcept {
    Frame* frame = frame_class.free.front();
    if (frame != nullptr) take_out(*frame);
    return frame;
}

// `wanted` nullptr: of any class.
Frame* FrameTable::take_foreign_free(const FrameClass* wanted) noexcept {
    for (FrameClass& frame_class : classes_) {
        if (&frame_class == wanted || !frame_class.open()) continue;
        if (Frame* frame = take_free(frame_class)) return frame;
    }
    return nullptr;
}

Frame* FrameTable::new_frame(FrameClass& frame_class) noexcept {
    metadata_bytes_ += sizeof(Frame);  // for good: descriptors stay
    const uint32_t index = frame_class.created++;
    Frame* frame = new (frame_class.frame(index)) Frame;
    frame->index = index;
    frame->slot_owner = index;
    frame->io.frame = frame;
    frame->frame_class = &frame_class;
    frame->bytes = frame_class.block_bytes;
    frame->memory = frame_class.arena.address() + index * frame_class.block_bytes;
    return frame;
}

Frame* FrameTable::create(FrameClass& frame_class) noexcept {
    if (Frame* leader = create_chunk(frame_class)) return leader;
    const uint64_t cost = frame_class.block_bytes;
    if (used_bytes_ + metadata_bytes_ + cost + sizeof(Frame) > budget_bytes_) return nullptr;
    Frame* frame = frame_class.bare.front();
    if (frame != nullptr) {
        take_out(*frame);
    } else if (frame_class.created < frame_class.capacity) {
        frame = new_frame(frame_class);
    } else {
        return nullptr;
    }
    used_bytes_ += cost;
    return frame;
}

// All frames of the next huge page at once, as long as the budget has room for them.
Frame* FrameTable::create_chunk(FrameClass& frame_class) noexcept {
    if (!has_room_for(frame_class, 1)) return nullptr;
    const uint32_t frames = chunk_frames(frame_class);
    used_bytes_ += frames * frame_class.block_bytes;
    Frame* leader = new_frame(frame_class);
    leader->chunk_frames = frames;
    for (uint32_t i = 1; i < frames; ++i) new_frame(frame_class);
    chunks_begun_.fetch_add(1, std::memory_order_seq_cst);
    return leader;
}

bool FrameTable::has_room_for(const FrameClass& frame_class, uint32_t chunks) const noexcept {
    if (frame_class.block_bytes < kContiguousBytesMin) return false;
    const uint32_t frames = chunk_frames(frame_class);
    const uint64_t cost = frames * (frame_class.block_bytes + sizeof(Frame));
    return frame_class.created % frames == 0 &&
           frame_class.capacity - frame_class.created >= chunks * frames &&
           used_bytes_ + metadata_bytes_ + chunks * cost <= budget_bytes_;
}

// In use, still growing, and with few frames left that have pages.  The last chunk is left to a
// fault: one that finds the room taken, but no frame yet, would evict.
bool FrameTable::wants_chunk(const FrameClass& frame_class, uint64_t free_bytes) const noexcept {
    return frame_class.created > 0 && frame_class.created < frame_class.blocks &&
           frame_class.bare.empty() && frame_class.free_bytes() < free_bytes &&
           has_room_for(frame_class, 2);
}

FrameClass* FrameTable::class_that_wants_chunk(uint64_t free_bytes) noexcept {
    if (is_populating()) return nullptr;
    for (FrameClass& frame_class : classes_) {
        if (wants_chunk(frame_class, free_bytes)) return &frame_class;
    }
    return nullptr;
}

uint64_t FrameTable::unlocked_low_water_bytes() const noexcept {
    const uint64_t bytes =
        std::min(unlocked_frame_budget_bytes() / kLowWaterShare, kLowWaterBytesMax);
    return evicts_ahead() ? bytes : bytes / kPartsLowWaterShare;
}

bool FrameTable::evicts_ahead() const noexcept {
    return !has_shelves_ || whole_score_ > kWholeScoreMany;
}

void FrameTable::note_shelf() noexcept {
    const sys::LockGuard guard(lock_);
    has_shelves_ = true;
}

bool FrameTable::is_eviction_ahead_useful() noexcept {
    const sys::LockGuard guard(lock_);
    return evicts_ahead();
}

uint64_t FrameTable::low_water_bytes() noexcept {
    const sys::LockGuard guard(lock_);
    return unlocked_low_water_bytes();
}

bool FrameTable::is_low(uint64_t reserved_bytes, bool evicts, bool populates) noexcept {
    const sys::LockGuard guard(lock_);
    const uint64_t low_bytes = unlocked_low_water_bytes();
    if (evicts && evicts_ahead() && reserved_bytes > unlocked_frame_budget_bytes() &&
        unlocked_available_bytes() < low_bytes) {
        return true;
    }
    return populates && class_that_wants_chunk(low_bytes / 2) != nullptr;
}

Frame* FrameTable::next_chunk_ahead() noexcept {
    const sys::LockGuard guard(lock_);
    FrameClass* const frame_class = class_that_wants_chunk(unlocked_low_water_bytes());
    return frame_class != nullptr ? create_chunk(*frame_class) : nullptr;
}

void FrameTable::chunk_populated(Frame& leader, bool success, bool leader_in_use) noexcept {
    {
        const sys::LockGuard guard(lock_);
        FrameClass& frame_class = *leader.frame_class;
        for (uint32_t i = leader_in_use ? 1 : 0; i < leader.chunk_frames; ++i) {
            Frame& frame = *frame_class.frame(leader.index + i);
            frame.zeroed = success;
            frame.bare = !success;
            if (!success) used_bytes_ -= frame_class.block_bytes;
            put(frame, success ? FrameQueue::kFree : FrameQueue::kBare);
        }
        leader.chunk_frames = 0;
        chunks_ended_.fetch_add(1, std::memory_order_seq_cst);
    }
    note_progress();
}

Frame* FrameTable::take_staged(IntrusiveList<Frame>& list, bool newest) noexcept {
    Frame* next = nullptr;
    for (Frame* frame = newest ? list.back() : list.front(); frame != nullptr; frame = next) {
        next = newest ? list.before(frame) : list.after(frame);
        if (give_up_staged(*frame)) return frame;
    }
    return nullptr;
}

// False: it is dirty, or somebody is just about to use it.
bool FrameTable::give_up_staged(Frame& frame) noexcept {
    Region& region = *frame.region;
    Block& block = region.block(frame.block);
    const uint32_t word = block.load();
    const bool usable =
        block_word::state(word) == BlockState::kStaged && (word & block_word::kDirty) == 0;
    uint32_t expected = word;
    const uint32_t absent = block_word::with_state(word, BlockState::kAbsent) &
                            ~(block_word::kSecondChance | block_word::kWaiters);
    if (!usable || region.is_closing() ||
        !block.word.compare_exchange_strong(expected, absent, std::memory_order_acq_rel)) {
        return false;
    }
    if (frame.queue == FrameQueue::kAhead) {
        count(region.counters.prefetch_unused);
        ahead_share_.note_unused(frame.bytes);
    } else {
        count(region.counters.clean_drops);
    }
    region.remove_resident(region.block_bytes);
    take_out(frame);
    frame.region = nullptr;
    return true;
}

bool FrameTable::is_held(const Region& region, uint32_t block) noexcept {
    return holds.cover(region.address_of(block), region.block_bytes);
}

Frame* FrameTable::take_victim(IntrusiveList<Frame>& list, bool newest, bool clean_only) noexcept {
    // Frames that cannot be taken now go to the far end, each at most once per call.
    for (size_t tries = list.size(); tries > 0; --tries) {
        Frame* frame = newest ? list.back() : list.front();
        Region& region = *frame->region;
        Block& block = region.block(frame->block);
        const uint32_t word = block.load();
        const bool suitable = !clean_only || (word & block_word::kDirty) == 0;
        const BlockState busy = state_of_victim(word, frame->queue);
        if (suitable && busy != BlockState::kAbsent && !block_word::pinned(word) &&
            !region.is_closing() && block.try_enter(word, busy)) {
            if (busy != BlockState::kWithdrawing || !is_held(region, frame->block)) {
                region.enter();
                return frame;
            }
            block.leave(block_word::state(word));
        }
        list.remove(frame);
        if (newest) {
            list.push_front(frame);
        } else {
            list.push_back(frame);
        }
    }
    return nullptr;
}

Frame* FrameTable::select_victim(FrameQueue& queue, bool prefer_clean,
                                 bool prefer_hidden) noexcept {
    const sys::LockGuard guard(lock_);
    rebalance();
    const bool ageing = ++evictions_ % kAgeingPeriod == 0;
    Frame* frame = nullptr;
    const bool many_hidden =
        prefer_hidden || hidden_bytes_ > shelf_share_.bytes_of(unlocked_frame_budget_bytes());
    for (IntrusiveList<Frame>* list : {&drop_, &hidden_, &probation_, &protected_}) {
        if (prefer_clean && frame == nullptr) frame = take_victim(*list, false, true);
    }
    if (frame == nullptr && !ageing) frame = take_victim(drop_, true);
    if (frame == nullptr && many_hidden) frame = take_victim(hidden_, false);
    if (frame == nullptr) frame = take_victim(probation_, false);
    if (frame == nullptr) frame = take_victim(protected_, false);
    if (frame == nullptr) frame = take_victim(drop_, ageing ? false : true);
    if (frame == nullptr) frame = take_victim(hidden_, false);
    if (frame == nullptr) return nullptr;
    queue = frame->queue;
    take_out(*frame);
    return frame;
}

bool FrameTable::wants_hidden(const Frame& victim, FrameQueue from) noexcept {
    if (victim.sparse) {
        // Behind a stream nothing more is found out of what it has not used.
        const bool is_left = from == FrameQueue::kDrop;
        const uint64_t known = is_left ? victim.shelved : victim.shelved & ~victim.neighbours;
        return victim.region->has_shelf() && from != FrameQueue::kHidden && known == 0;
    }
    const bool mapped = from == FrameQueue::kProbation || from == FrameQueue::kProtected;
    if (!mapped || !victim.region->is_adopted()) return false;
    const uint32_t word = victim.region->block(victim.block).load();
    return block_word::state(word) == BlockState::kWithdrawing &&
           (victim.is_tested || (word & block_word::kDirty) != 0);
}

Frame* FrameTable::select_dropped() noexcept {
    const sys::LockGuard guard(lock_);
    Frame* frame = drop_.back();
    for (uint32_t sparse = 0; frame != nullptr && frame->sparse; ++sparse) {
        frame = sparse < kSparseDroppedMax ? drop_.before(frame) : nullptr;
    }
    if (frame == nullptr) return nullptr;
    Region& region = *frame->region;
    Block& block = region.block(frame->block);
    const uint32_t word = block.load();
    if (block_word::state(word) != BlockState::kReadOnly || block_word::pinned(word) ||
        region.is_closing() || !block.try_enter(word, BlockState::kWithdrawing)) {
        return nullptr;
    }
    if (is_held(region, frame->block)) {
        block.leave(block_word::state(word));
        return nullptr;
    }
    region.enter();
    take_out(*frame);
    return frame;
}

// Keeps the protected part within its share; what falls out is on probation again.
void FrameTable::rebalance() noexcept {
    test_protected();
    while (protected_bytes_ * kProtectedDenominator >
           (protected_bytes_ + probation_bytes_) * kProtectedNumerator) {
        Frame* frame = protected_.front();
        if (frame == nullptr) return;
        take_out(*frame);
        put(*frame, FrameQueue::kProbation);
    }
}

// What has been protected for long is on probation again, in the measure of what comes: while
// something else is in use that does not fit, it is found out whether it still is.  Only what is
// hidden before it leaves (wants_hidden).
void FrameTable::test_protected() noexcept {
    if (given_bytes_ - tested_at_bytes_ > kUntestedBytesMax) {
        tested_at_bytes_ = given_bytes_ - kUntestedBytesMax;
    }
    for (uint32_t tests = 0; tests < kTestsMax; ++tests) {
        Frame* const frame = protected_.front();
        const bool is_due =
            frame != nullptr && given_bytes_ - tested_at_bytes_ >= frame->bytes * kTestedShare;
        if (!is_due) return;
        tested_at_bytes_ += frame->bytes * kTestedShare;
        const Region& region = *frame->region;
        const bool is_hidden_first = frame->sparse ? region.has_shelf() : region.is_adopted();
        frame->is_tested = is_hidden_first;
        take_out(*frame);
        put(*frame, is_hidden_first ? FrameQueue::kProbation : FrameQueue::kProtected);
    }
}

void FrameTable::enqueue(Frame& frame, FrameQueue queue) noexcept {
    const sys::LockGuard guard(lock_);
    leave_run(frame, false);
    if (frame.queue != FrameQueue::kNone) take_out(frame);
    put(frame, queue);
}

void FrameTable::dequeue(Frame& frame) noexcept {
    const sys::LockGuard guard(lock_);
    if (frame.queue == FrameQueue::kHidden) shelf_share_.note_return();
    if (frame.queue == FrameQueue::kAhead) ahead_share_.note_used(frame.bytes);
    if (frame.queue != FrameQueue::kNone) take_out(frame);
}

void FrameTable::requeue_unpinned(Region& region, uint32_t index) noexcept {
    const sys::LockGuard guard(lock_);
    const Block& block = region.block(index);
    const uint32_t word = block.load();
    const bool mapped =
        block_word::resident(word) || block_word::state(word) == BlockState::kUpgrading;
    if (!mapped || block_word::pinned(word)) return;
    Frame& frame = *region.frame_of(block);
    if (frame.queue == FrameQueue::kNone) put(frame, FrameQueue::kProbation);
}

void FrameTable::mark_drop(Frame& frame, const Region& region, uint32_t index) noexcept {
    const sys::LockGuard guard(lock_);
    if (frame.queue != FrameQueue::kProbation || replacement_ == Replacement::kRoundRobin) return;
    if (frame.region != &region || frame.block != index) return;
    if (frame.sparse && std::atomic_ref(frame.shelved).load(std::memory_order_relaxed) == 0) return;
    take_out(frame);
    put(frame, FrameQueue::kDrop);
}

IntrusiveList<Frame>* FrameTable::list_of(const Frame& frame) noexcept {
    switch (frame.queue) {
        case FrameQueue::kNone: return nullptr;
        case FrameQueue::kFree: return &frame.frame_class->free;
        case FrameQueue::kBare: return &frame.frame_class->bare;
        case FrameQueue::kProbation: return &probation_;
        case FrameQueue::kProtected: return &protected_;
        case FrameQueue::kDrop: return &drop_;
        case FrameQueue::kInactive: return &inactive_;
        case FrameQueue::kHidden: return &hidden_;
        case FrameQueue::kAhead: return &ahead_;
    }
    return nullptr;
}

uint64_t* FrameTable::bytes_of(FrameQueue queue) noexcept {
    switch (queue) {
        case FrameQueue::kFree: return &free_bytes_;
        case FrameQueue::kInactive: return &inactive_bytes_;
        case FrameQueue::kHidden: return &hidden_bytes_;
        case FrameQueue::kAhead: return &ahead_bytes_;
        case FrameQueue::kProbation: return &probation_bytes_;
        case FrameQueue::kProtected: return &protected_bytes_;
        default: return nullptr;
    }
}

void FrameTable::put(Frame& frame, FrameQueue queue) noexcept {
    if (queue == FrameQueue::kProtected && replacement_ == Replacement::kRoundRobin) {
        queue = FrameQueue::kProbation;
    }
    frame.queue = queue;
    if (queue != FrameQueue::kProbation) frame.is_tested = false;
    IntrusiveList<Frame>& list = *list_of(frame);
    if (queue == FrameQueue::kFree || queue == FrameQueue::kBare) {
        list.push_front(&frame);
    } else {
        list.push_back(&frame);
    }
    frame.given_before_bytes = given_bytes_;
    frame.counted_bytes = bytes_in_queue(frame);
    if (uint64_t* bytes = bytes_of(queue)) *bytes += frame.counted_bytes;
}

void FrameTable::take_out(Frame& frame) noexcept {
    list_of(frame)->remove(&frame);
    if (uint64_t* bytes = bytes_of(frame.queue)) *bytes -= frame.counted_bytes;
    frame.queue = FrameQueue::kNone;
}

uint64_t FrameTable::available_bytes() noexcept {
    const sys::LockGuard guard(lock_);
    return unlocked_available_bytes();
}

uint64_t FrameTable::unlocked_available_bytes() const noexcept {
    const uint64_t used = used_bytes_ + metadata_bytes_;
    return free_bytes_ + nearly_free_bytes_ + inactive_bytes_ +
           (used < budget_bytes_ ? budget_bytes_ - used : 0);
}

FrameTable::Usage FrameTable::usage() noexcept {
    const sys::LockGuard guard(lock_);
    return {budget_bytes_, metadata_bytes_, used_bytes_, free_bytes_ + nearly_free_bytes_};
}

uint64_t FrameTable::frame_budget_bytes() noexcept {
    const sys::LockGuard guard(lock_);
    return unlocked_frame_budget_bytes();
}

void FrameTable::note_progress() noexcept {
    progress_.fetch_add(1, std::memory_order_seq_cst);
    if (progress_waiters_.load(std::memory_order_seq_cst) != 0) sys::futex_wake_all(progress_);
}

void FrameTable::wait_progress(uint32_t seen, int timeout_ms) noexcept {
    progress_waiters_.fetch_add(1, std::memory_order_seq_cst);
    if (progress() == seen) sys::futex_wait(progress_, seen, timeout_ms);
    progress_waiters_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace hanare::pager
