// SPDX-License-Identifier: Apache-2.0
//
// FrameTable: the budget, the lists of frames and the replacement policy of one pool.
//
// Replacement.  A user-level pager sees faults, not references, so a block's use is learned by
// taking it out of the address space and watching whether it comes back (as VMS did with its free
// and modified lists).  Mapped blocks wait in `probation` in order of arrival; the oldest is
// withdrawn, cleaned by write-back and parked as `inactive`, from where its frame is taken if
// nobody touches it, and from where it returns to `protected` if somebody does.  Blocks behind a
// sequential stream go to `drop` and are evicted before all others, last in first out: the stream
// then recycles few frames, and what was resident before it survives the scan.  Every
// kAgeingPeriod-th eviction takes the oldest block instead, so that a resident set which nobody
// uses any more leaves in the end.
//
// Round robin, for comparison: `probation` is the ring of mapped blocks, and its front the pointer
// that goes round.  The block there is evicted, the one that comes takes its place in the order
// and its frame, and nothing else is known of either.
//
// Threads: any, including fault handlers; one lock, never held across a system call other than
// futex.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/result.hpp"
#include "base/units.hpp"
#include "pager/fault/ahead_share.hpp"
#include "pager/fault/block.hpp"
#include "pager/fault/engine.hpp"
#include "pager/fault/frame.hpp"
#include "pager/fault/frame_run.hpp"
#include "pager/fault/shelf_share.hpp"
#include "sys/lock.hpp"

namespace hanare::pager {

enum class Replacement : uint8_t { kSecondChance, kRoundRobin };

class FrameTable {
public:
    // The budget is for frames, their descriptors and the tables of regions.
    // `inherited`: children of fork go on with it.
    FrameTable(uint64_t budget_bytes, Replacement replacement, bool inherited = false)
        : given_budget_bytes_(budget_bytes),
          budget_bytes_(budget_bytes),
          adopted_tables_max_(budget_bytes / 4),
          replacement_(replacement),
          inherited_(inherited) {}

    Replacement replacement() const noexcept { return replacement_; }

    // Makes sure frames of this size exist.  LIMIT when the budget holds fewer than kFramesMin.
    Result<FrameClass*> open_class(uint64_t block_bytes, Engine& engine);

    // In a child: the arenas are the engine's again.  0 or an errno value.
    int watch_arenas(Engine& engine) noexcept;

    // Makes sure descriptors for sparse blocks exist; they have no slots.
    Result<FrameClass*> open_sparse_class();

    // Takes the tables of a new region out of the budget, or gives them back when it has ended.
    // LIMIT when fewer than kFramesMin of the largest blocks in use would remain.  Afterwards
    // excess_bytes() may be positive until frames are given up.
    Result<void> charge_region(FrameClass& frame_class, uint64_t blocks, uint64_t table_bytes);
    void refund_region(FrameClass& frame_class, uint64_t blocks, uint64_t table_bytes) noexcept;

    // The same for memory that a program maps and unmaps; never refused.  Of these tables a quarter
    // of the first budget counts at most: who maps so much more than there is memory uses little of
    // it, and pages of tables that nobody uses are not there.
    void adjust_region(FrameClass& frame_class, int64_t blocks, int64_t table_bytes) noexcept;
    // What the budget is from now on; never more than it was at first.  Afterwards excess_bytes()
    // may be positive.
    void set_budget(uint64_t bytes) noexcept;

    // Whether blocks that were read ahead and not used yet may be given up for a frame.
    enum class UseAhead {
        kNever,
        kBeyondShare,  // when they fill more than their share of the budget
        kAlways,
    };
    // A frame without a block: a free one, a new one within the budget (may_create), or one whose
    // staged block is clean (that block becomes absent).  nullptr when a block has to be evicted
    // first.
    Frame* acquire(FrameClass& frame_class, UseAhead use_ahead, bool may_create) noexcept;

    // Takes `bytes` out of the budget for a part of a sparse block, giving up frames as acquire()
    // does.  False when a block has to be evicted first.
    bool reserve(uint64_t bytes, UseAhead use_ahead) noexcept;
    void refund(uint64_t bytes) noexcept;
    // A descriptor for a sparse block, counting for no bytes; nullptr when the budget has no room.
    Frame* acquire_sparse(FrameClass& sparse_class) noexcept;
    // Puts a sparse frame at the end of the probation queue; from now on it counts for `bytes`,
    // which were reserved.
    void requeue_sparse(Frame& frame, uint64_t bytes) noexcept;
    // The same for one that keeps its place in the queue, if it is in one.
    void resize_sparse(Frame& frame, uint64_t bytes) noexcept;
    // Frees the pages of a block that was read ahead and not used while all of the budget could
    // have been filled anew; false when there is none.
    bool give_up_stale() noexcept;
    // Something of a region with a shelf had to be read.
    void note_missed() noexcept;
    // Parts of a sparse frame have left the shelf, to which they were withdrawn or not; a hidden
    // one where none are left is hidden no more.
    void note_back_from_shelf(Frame& frame, bool was_withdrawn) noexcept;
    // The pages of `whole` are the sparse frame's from now on, which is in no queue; `whole` has no
    // block any more.
    void hand_over(Frame& whole, Frame& sparse) noexcept;

    // Gives a frame back whose block has become absent.  `bare`: its pages are gone, too.
    void release(Frame& frame, bool bare) noexcept;

    // For engines that copy.  The content of the frame's slot is in the region now: its pages are
    // kept for the next block that leaves, or given back.
    void empty_slot(Frame& frame) noexcept;
    // A block is about to be withdrawn into the frame's slot, which gets pages if some are kept.
    void refill_slot(Frame& frame) noexcept;

    // What the keeper tries to have free or clean ahead of need.
    static constexpr uint64_t kLowWaterBytesMax = 8 * kMiB;
    uint64_t low_water_bytes() noexcept;
    // Some region has a shelf.
    void note_shelf() noexcept;
    // Not where single parts of regions with shelves are what is needed: all that the keeper does
    // with their pages interrupts the program's threads on other processors (decision 21).
    bool is_eviction_ahead_useful() noexcept;
    // Whether it has something to do for that: to evict, if `reserved_bytes` are more than fit, or
    // to populate, once half of it is used up.
    bool is_low(uint64_t reserved_bytes, bool evicts, bool populates) noexcept;
    // A bare frame that leads a chunk, of a block size whose frames grow in number and have less
    // than that free; nullptr when there is none.  One at a time.
    Frame* next_chunk_ahead() noexcept;

    // After a bare frame that leads a chunk was given: the pages of all its frames are there, or
    // none is.  They become free, but for the leader if it is in use.
    void chunk_populated(Frame& leader, bool success, bool leader_in_use) noexcept;
    // Chunks that were given, and those of them whose end note_progress() has told or will tell.
    // As long as they differ frames will be free soon.
    uint32_t chunks_begun() const noexcept { return chunks_begun_.load(std::memory_order_seq_cst); }
    uint32_t chunks_ended() const noexcept { return chunks_ended_.load(std::memory_order_seq_cst); }
    bool is_populating() const noexcept { return chunks_ended() != chunks_begun(); }

    // Frees the pages of free frames of other sizes than `wanted` that no region has.
    void give_up_unused(const FrameClass& wanted) noexcept;

    // Frees the pages of free and staged frames until the budget holds again.
    void trim() noexcept;
    uint64_t excess_bytes() noexcept;

    // Chooses a mapped, unpinned block and enters kWithdrawing, or one whose write-back failed
    // before and enters kWriting; holds its region (Region::enter).  The caller evicts it.  nullptr
    // when there is none.  `queue` tells where it came from.  `prefer_clean`: one that needs no
    // write-back, if there is any.  `prefer_hidden`: one that has been withdrawn, however few are.
    Frame* select_victim(FrameQueue& queue, bool prefer_clean = false,
                         bool prefer_hidden = false) noexcept;

    // For engines that move runs.  Adds frames with the slots beside it to one that acquire() has
    // given, to `count` of them: what that gives without giving up what was read ahead.
    void extend_free(FrameRun& run, uint32_t count) noexcept;
    // Adds to a dirty victim that select_victim() has given, as if it had given them too, others
    // from that queue that hold the blocks beside its own and are dirty.  Whether there are some
    // and all have slots beside each other now.
    bool extend_victim(FrameRun& run, FrameQueue queue) noexcept;
    // Frames that are being written become free at the same time, so that who needs some finds
    // slots beside each other.
    void free_together(const FrameRun& run) noexcept;

    // Whether a victim that is dirty had better be withdrawn only (kHidden), and written if it
    // comes up as a victim again: what is used over and over would otherwise be written each time.
    // So had a sparse one, if nothing that was withdrawn is left on the shelf.
    bool wants_hidden(const Frame& victim, FrameQueue from) noexcept;

    // Whether a system call uses the block; the owner of a transient state asks.
    static bool is_held(const Region& region, uint32_t block) noexcept;

    // The same for the block that streams have left behind last, if it is clean.
    Frame* select_dropped() noexcept;

    // Puts the frame of a block into its queue, before the owner leaves the transient state; the
    // owner calls note_progress() after it has left.
    void enqueue(Frame& frame, FrameQueue queue) noexcept;
    // Takes the frame out of whatever queue it is in.
    void dequeue(Frame& frame) noexcept;
    // Moves the frame to the drop queue if it holds that block and is on probation; one of a sparse
    // block only if some of it is on the shelf, which then goes.
    void mark_drop(Frame& frame, const Region& region, uint32_t index) noexcept;
    // Puts a frame that was pinned back on probation, unless somebody else has queued it.
    void requeue_unpinned(Region& region, uint32_t index) noexcept;

    // Whether what was read ahead and not used yet, with `bytes` more, has passed the share of it
    // that acquire() leaves alone.
    bool is_beyond_ahead_share(uint64_t bytes) noexcept;
    // Whether streams may read that much ahead.  Not if half of the budget would be full of it
    // and there is no other room; that counts as read in vain.
    bool may_fill_ahead(uint64_t bytes) noexcept;
    // What the streams of a region had better read ahead in blocks of that size, at most.
    uint64_t ahead_bytes_wanted(uint64_t block_bytes) noexcept;

    // Bytes that acquire() could serve without an eviction.
    uint64_t available_bytes() noexcept;

    struct Usage {
        uint64_t budget_bytes, metadata_bytes, frame_bytes, free_bytes;
    };
    Usage usage() noexcept;

    // Frames are created within budget - metadata.
    uint64_t frame_budget_bytes() noexcept;

    // Accounts for frames that cannot be evicted.  False: fewer than kFramesMin of the largest
    // blocks remain for everything else; it is charged all the same.
    bool charge_pinned(uint64_t bytes) noexcept;
    void refund_pinned(uint64_t bytes) noexcept;
    uint64_t pinned_bytes() noexcept;
    // The same of what stays in memory whatever the budget is, as nobody can do without it.  Where
    // too little would remain for everything else, which would wait for ever, the budget is
    // exceeded; true: by more than before.
    bool charge_kept(uint64_t bytes) noexcept;
    void refund_kept(uint64_t bytes) noexcept;
    // For so much more than is used now, until the budget is set the next time: who waits for room
    // may be whom all others wait for.
    void exceed_budget(uint64_t bytes) noexcept;
    // Whether so much more can be kept within the budget.
    bool has_room_for_kept(uint64_t bytes) noexcept;

    // Returns when every thread that was inside a method when it was called has left it.
    void wait_for_others() noexcept { const sys::LockGuard guard(lock_); }

    // Waiting for a change that may make acquire() or select_victim() succeed.
    uint32_t progress() const noexcept { return progress_.load(std::memory_order_acquire); }
    void wait_progress(uint32_t seen, int timeout_ms = -1) noexcept;
    void note_progress() noexcept;
    const std::atomic<uint32_t>& progress_waiters() const noexcept { return progress_waiters_; }
    bool is_waited_for() const noexcept {
        return progress_waiters_.load(std::memory_order_seq_cst) != 0;
    }

private:
    static constexpr uint32_t kAgeingPeriod = 16;
    static constexpr uint32_t kWholeScoreAtFirst = 256;

    Frame* find_or_create(FrameClass& frame_class, UseAhead use_ahead, bool may_create) noexcept;
    static uint64_t bytes_in_queue(const Frame& frame) noexcept;
    void count_again(Frame& frame) noexcept HANARE_REQUIRES(lock_);
    Frame* take_free(FrameClass& frame_class) noexcept HANARE_REQUIRES(lock_);
    Frame* create(FrameClass& frame_class) noexcept HANARE_REQUIRES(lock_);
    Frame* create_chunk(FrameClass& frame_class) noexcept HANARE_REQUIRES(lock_);
    uint64_t unlocked_available_bytes() const noexcept HANARE_REQUIRES(lock_);
    bool has_room_for(const FrameClass& frame_class, uint32_t chunks) const noexcept
        HANARE_REQUIRES(lock_);
    bool wants_chunk(const FrameClass& frame_class, uint64_t free_bytes) const noexcept
        HANARE_REQUIRES(lock_);
    FrameClass* class_that_wants_chunk(uint64_t free_bytes) noexcept HANARE_REQUIRES(lock_);
    bool evicts_ahead() const noexcept HANARE_REQUIRES(lock_);
    uint64_t unlocked_low_water_bytes() const noexcept HANARE_REQUIRES(lock_);
    Frame* new_frame(FrameClass& frame_class) noexcept HANARE_REQUIRES(lock_);
    Frame* take_staged(IntrusiveList<Frame>& list, bool newest) noexcept HANARE_REQUIRES(lock_);
    bool give_up_staged(Frame& frame) noexcept HANARE_REQUIRES(lock_);
    Frame* take_foreign_free(const FrameClass* wanted) noexcept HANARE_REQUIRES(lock_);
    bool is_ahead_stale() noexcept HANARE_REQUIRES(lock_);
    Frame* take_reclaimable(UseAhead use_ahead) noexcept HANARE_REQUIRES(lock_);
    // What the tables leave of the budget.
    uint64_t unlocked_frame_budget_bytes() const noexcept HANARE_REQUIRES(lock_) {
        return budget_bytes_ > metadata_bytes_ ? budget_bytes_ - metadata_bytes_ : 0;
    }
    Frame* take_victim(IntrusiveList<Frame>& list, bool newest, bool clean_only = false) noexcept
        HANARE_REQUIRES(lock_);
    static Frame* owner_of_slot(FrameClass& frame_class, uint32_t slot) noexcept;
    static void exchange_slots(Frame& a, Frame& b) noexcept;
    bool take_beside(FrameRun& run, bool is_before) noexcept HANARE_REQUIRES(lock_);
    bool withdraw_beside(FrameRun& run, bool is_before, FrameQueue queue) noexcept
        HANARE_REQUIRES(lock_);
    static bool join_slots(FrameRun& run) noexcept;
    // True: the frame is free, now or once the others of its run have left.
    bool leave_run(Frame& frame, bool is_free) noexcept HANARE_REQUIRES(lock_);
    void put(Frame& frame, FrameQueue queue) noexcept HANARE_REQUIRES(lock_);
    void take_out(Frame& frame) noexcept HANARE_REQUIRES(lock_);
    IntrusiveList<Frame>* list_of(const Frame& frame) noexcept HANARE_REQUIRES(lock_);
    uint64_t* bytes_of(FrameQueue queue) noexcept HANARE_REQUIRES(lock_);
    void rebalance() noexcept HANARE_REQUIRES(lock_);
    void test_protected() noexcept HANARE_REQUIRES(lock_);
    uint64_t floor_bytes() const noexcept HANARE_REQUIRES(lock_);
    uint64_t floor_beside_kept() const noexcept HANARE_REQUIRES(lock_);
    bool adapt_budget() noexcept HANARE_REQUIRES(lock_);
    uint64_t places_per_frame() const;
    void make_bare(Frame& frame) noexcept HANARE_EXCLUDES(lock_);

    uint64_t given_budget_bytes_;
    uint64_t budget_bytes_;  // changed under lock_: that, or what has to be in memory
    const uint64_t adopted_tables_max_;
    const Replacement replacement_;
    const bool inherited_;

    sys::RankedLock lock_{sys::LockRank::kFrames};
    uint64_t metadata_bytes_ HANARE_GUARDED_BY(lock_) = 0;
    // In it, with adopted_tables_max_ at most.
    uint64_t adopted_table_bytes_ HANARE_GUARDED_BY(lock_) = 0;
    uint64_t spare_bytes_ HANARE_GUARDED_BY(lock_) = 0;  // of all spare slots; not in the budget
    uint64_t pinned_bytes_ HANARE_GUARDED_BY(lock_) = 0;
    uint64_t kept_bytes_ HANARE_GUARDED_BY(lock_) = 0;  // in it (charge_kept)
    uint64_t exceeded_to_bytes_ HANARE_GUARDED_BY(lock_) = 0;
    uint64_t used_bytes_ HANARE_GUARDED_BY(lock_) = 0;  // populated frames, mapped or not
    uint64_t free_bytes_ HANARE_GUARDED_BY(lock_) = 0;  // in free lists
    // Once the others of their run are.
    uint64_t nearly_free_bytes_ HANARE_GUARDED_BY(lock_) = 0;
    uint64_t given_bytes_ HANARE_GUARDED_BY(lock_) = 0;  // by acquire() and reserve(), in all
    // Of that, as far as it has led to tests of what is protected.
    uint64_t tested_at_bytes_ HANARE_GUARDED_BY(lock_) = 0;
    // How far whole blocks prevail among what is needed.
    uint32_t whole_score_ HANARE_GUARDED_BY(lock_) = kWholeScoreAtFirst;
    bool has_shelves_ HANARE_GUARDED_BY(lock_) = false;
    ShelfShare shelf_share_ HANARE_GUARDED_BY(lock_);
    AheadShare ahead_share_ HANARE_GUARDED_BY(lock_);
    uint64_t inactive_bytes_ HANARE_GUARDED_BY(lock_) = 0;
    uint64_t hidden_bytes_ HANARE_GUARDED_BY(lock_) = 0;
    uint64_t ahead_bytes_ HANARE_GUARDED_BY(lock_) = 0;
    uint64_t probation_bytes_ HANARE_GUARDED_BY(lock_) = 0;
    uint64_t protected_bytes_ HANARE_GUARDED_BY(lock_) = 0;
    uint32_t evictions_ HANARE_GUARDED_BY(lock_) = 0;
    std::array<FrameClass, kFrameClasses> classes_ HANARE_GUARDED_BY(lock_);
    FrameClass sparse_class_ HANARE_GUARDED_BY(lock_);
    IntrusiveList<Frame> probation_ HANARE_GUARDED_BY(lock_);
    IntrusiveList<Frame> protected_ HANARE_GUARDED_BY(lock_);
    IntrusiveList<Frame> drop_ HANARE_GUARDED_BY(lock_);
    IntrusiveList<Frame> inactive_ HANARE_GUARDED_BY(lock_);
    IntrusiveList<Frame> hidden_ HANARE_GUARDED_BY(lock_);
    IntrusiveList<Frame> ahead_ HANARE_GUARDED_BY(lock_);

    std::atomic<uint32_t> chunks_begun_{0};
    std::atomic<uint32_t> chunks_ended_{0};
    std::atomic<uint32_t> progress_{0};
    std::atomic<uint32_t> progress_waiters_{0};
};

}  // namespace hanare::pager
