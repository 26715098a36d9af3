// SPDX-License-Identifier: Apache-2.0
//
// Pager: moves blocks between their states (block.hpp) on behalf of one pool.  Faulting threads
// come in through serve(); the keeper, pin, flush and free use the single steps.
//
// Everything here may run in a fault handler: no allocation, no exception, no lock but RankedLock.
// Callers outside a handler hold a sys::SignalBlock.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>

#include "hanare/status.h"
#include "pager/fault/access_history.hpp"
#include "pager/fault/engine.hpp"
#include "pager/fault/fault_transfers.hpp"
#include "pager/fault/frame_table.hpp"
#include "pager/fault/gate.hpp"
#include "pager/fault/leftovers.hpp"
#include "pager/fault/part_reads.hpp"
#include "pager/fault/parts.hpp"
#include "pager/fault/read_ahead_depth.hpp"
#include "pager/fault/region.hpp"
#include "pager/fault/write_sets.hpp"
#include "store/store.hpp"
#include "sys/clock.hpp"

namespace hanare::pager {

// What faulting threads want from the keeper.
class KeeperSignal {
public:
    virtual ~KeeperSignal() = default;
    // Wakes the keeper if it sleeps.  Async-signal-safe.
    virtual void kick() noexcept = 0;
    // Whether as many write-backs are in flight as it allows itself; it looks for more to do when
    // one of them has ended well.  Async-signal-safe.
    virtual bool is_cleaning_at_most() const noexcept = 0;
};

// Blocks to be read ahead: first, first + step, ...
struct ReadAhead {
    Region* region = nullptr;  // entered (Region::enter) while the request is queued
    uint32_t first = 0;
    uint32_t count = 0;
    int32_t step = 1;

    bool overlaps(uint32_t begin, uint32_t end) const noexcept {
        if (count == 0) return false;
        const uint32_t last = first + (count - 1) * static_cast<uint32_t>(step);
        return std::min(first, last) < end && begin <= std::max(first, last);
    }
};

class FaultService;

class Pager {
public:
    // `buffers`: PartReads::kBuffers of kPartBytesMax; `copies`: some of these; `zeros`:
    // kPartBytesMax, never written.
    // `read_ahead_blocks`: at most, ahead of one stream, of blocks of `block_bytes`.  `may_spin`:
    // other threads can run while one waits in a loop.
    Pager(store::Store& store, Engine& engine, FrameTable& frames, uint32_t read_ahead_blocks,
          uint64_t block_bytes, bool may_spin, sys::Mapping buffers, sys::Mapping copies,
          sys::Mapping zeros)
        : store_(store),
          has_checksums_(!store.authenticates()),
          engine_(engine),
          frames_(frames),
          read_ahead_blocks_(read_ahead_blocks),
          read_ahead_depth_(
              make_depth(std::min(read_ahead_blocks * block_bytes, frames.frame_budget_bytes() / 4),
                         frames.frame_budget_bytes(), block_bytes)),
          transfers_(*this, store.open_transfers(store::TransferCapacity::kMany), may_spin),
          part_reads_(store, std::move(buffers), may_spin),
          copies_(std::move(copies), kPartBytesMax),
          zeros_(std::move(zeros)) {}

    // `works_ahead`: it frees frames before they are needed.
    void set_keeper(KeeperSignal* keeper, bool works_ahead) noexcept {
        keeper_ = keeper;
        works_ahead_ = works_ahead;
    }
    // For regions whose blocks have no fixed place in the store.  Before there are any.
    void set_slots(store::SlotTable* slots, uint64_t slot_bytes) noexcept {
        slots_ = slots;
        slot_bytes_ = slot_bytes;
    }
    store::SlotTable& slots() noexcept { return *slots_; }
    // For engines whose faults threads serve; else nullptr.
    void set_fault_service(FaultService* service) noexcept { fault_service_ = service; }
    FaultService* fault_service() const noexcept { return fault_service_; }

    // Serves an access by the program: returns when the address was mapped with sufficient rights.
    // *was_mapped: it was so already, by somebody else's work since the fault.  `history`: the
    // thread's.
    hanare_status serve(Region& region, const void* address, bool write, AccessHistory& history,
                        bool* was_mapped) noexcept;

    // Makes a whole block resident, without regard to streams, and pins the block; *first: it had
    // no pin.  LIMIT when it has too many pins.
    hanare_status pin(Region& region, uint32_t index, bool write, bool* first) noexcept;
    // *last: no pin is left.  False if there was none.
    bool unpin(Region& region, uint32_t index, bool* last) noexcept;

    // Withdraws a victim that select_victim() chose.  On success the block is in kWriting if it is
    // dirty, else still in kWithdrawing; the caller goes on, and parks a clean one as it has said,
    // because the frame may be without content for kFree.  On failure it is mapped again and the
    // region is left.
    // `all`: of a sparse block, also parts that have been used lately.
    hanare_status withdraw(Frame& frame, Park park_clean, bool* dirty, bool all = false) noexcept;
    // Instead of withdraw(), for a victim from that queue: withdraws with it what lies beside it
    // and is as dirty, if a stream has left it behind; only if it is clean unless `may_write`. kNo:
    // nothing has happened, but that `run` is made of all that withdraw() is still to be called
    // for.  kFailed: as where that has failed.
    enum class Together { kNo, kYes, kFailed };
    Together withdraw_run(Frame& victim, FrameQueue queue, Park park, bool may_write,
                          FrameRun& run) noexcept;
    // Instead of withdraw(), for a victim of which FrameTable::wants_hidden() is true.  Leaves the
    // region.  False: the kernel refused.
    bool hide_victim(Frame& frame) noexcept;
    // Ends the eviction of a block whose frame equals the store.  Leaves the region.
    void finish_clean(Frame& frame, Park park) noexcept;
    // Ends a write-back: as finish_clean if it succeeded, else the block stays staged and dirty.
    void finish_write(Frame& frame, hanare_status status, Park park) noexcept;

    // Read-ahead in two halves.  start_fill: the block is stored and absent, a frame is at hand
    // without eviction, its request is filled in.  finish_fill: after the read; abandon_fill: it
    // was not started.
    enum class Reader { kKeeper, kFault };
    enum class FillStart { kStarted, kNothingToDo, kNoFrame, kForKeeper };
    FillStart start_fill(Region& region, uint32_t index, Reader reader, Frame** frame) noexcept;
    void finish_fill(Frame& frame, hanare_status status) noexcept;
    void abandon_fill(Frame& frame) noexcept;
    // The end of what a fault has started; abandon_transfer: the system has refused it.
    void finish_transfer(store::IoRequest& request) noexcept;
    void abandon_transfer(store::IoRequest& request) noexcept;
    // Of what leaves with writes that faults have started.
    uint64_t storing_bytes() const noexcept {
        return storing_bytes_.load(std::memory_order_relaxed);
    }
    // Until that has left, or the budget holds.
    void wait_for_storing() noexcept {
        transfers_.wait_while([&] { return storing_bytes() > 0 && frames_.excess_bytes() > 0; });
    }
    // Completes what faults have started, as far as it has arrived.
    void poll_transfers() noexcept { transfers_.poll(); }
    // For the end of a region, which is closing: nothing that a fault has started is in flight, or
    // will be.
    void finish_transfers(Region& region) noexcept;

    // The owner of a transient state makes the block absent, which also clears `flags`, and frees
    // its frame.
    void give_up_frame(Frame& frame, uint32_t flags = 0) noexcept;

    // For shared regions, where an access to a mapped block keeps faulting.  False: it is lost.
    bool map_again(Region& region, const void* address) noexcept;

    // Whether a missing page belongs to a part that is being written to the store from where it is:
    // who writes may be who waits for it.
    bool is_missed_by_writer(Region& region, const std::byte* page) noexcept;
    // For accesses that cannot be served (Engine::refuse, readmit); the block is owned meanwhile.
    // EBUSY: somebody else owns it.
    int refuse(Region& region, std::byte* page) noexcept;
    int readmit(Region& region, const std::byte* page) noexcept;

    // Forgets the content of a block: it is absent then, and zeros.  A pinned block keeps it.
    hanare_status discard(Region& region, uint32_t index) noexcept;

    // Nothing is left of what came back from shelves; one of them is about to go.
    void drop_leftovers() noexcept { leftovers_.drop_all(); }

    // Memory that was adopted from a program (adopted.cpp).  hold: brings the blocks of
    // [begin, end), which the caller has published in `holds`, into memory, for a system call.
    // pin_for_good: a block stays in memory until it is discarded with force.
    hanare_status hold(Region& region, const std::byte* begin, const std::byte* end,
                       bool write) noexcept;
    hanare_status hold_parts(Region& region, uint32_t index, uint32_t first, uint32_t last,
                             bool write) noexcept;
    void pin_for_good(Region& region, uint32_t index) noexcept;
    void unpin_for_good(Region& region, uint32_t index) noexcept;
    // Takes a block out of the address space, its content kept in its frame or in the store; a
    // pinned one stays: BUSY.
    hanare_status hide(Region& region, uint32_t index) noexcept;
    // What a block holds is from now on at another one, of the same region and empty.
    hanare_status relocate(Region& region, uint32_t from, uint32_t to) noexcept;
    // Forgets what parts of a block hold, as far as that needs no access to them; the others of
    // `parts`, which the caller has to fill with zeros, are returned.
    uint64_t discard_parts(Region& region, uint32_t index, uint64_t parts) noexcept;

    // Until the block may have left the transient state `seen`; completes it where that is whoever
    // waits.  Returns the nanoseconds in which a stream had to wait for the device.
    uint64_t wait(Block& block, uint32_t seen) noexcept;

    // Evicts one block in the calling thread; false when there is none or it failed.
    bool evict_one() noexcept;

    // Prepares frame.io and the checksums for writing the frame's block, or the first run of dirty
    // parts of a sparse one.  STORE_FULL: there is no room for it, or for a copy of its own.
    hanare_status prepare_write(Frame& frame) noexcept;
    // After a write that succeeded: prepares the next run, if there is another.
    bool prepare_next_write(Frame& frame) noexcept;

    // How many reads from the store were begun; wraps.
    uint32_t reads_begun() const noexcept { return reads_begun_.load(std::memory_order_relaxed); }
    // Bytes of the blocks that the program has begun to write and the store had nothing of.
    uint64_t begun_bytes() const noexcept { return begun_bytes_.load(std::memory_order_relaxed); }

    // The queue to the keeper; a full queue drops the request (it is only advice).
    void request_read_ahead(Region& region, uint32_t first, uint32_t count, int32_t step) noexcept;
    bool next_read_ahead(ReadAhead& request) noexcept;
    // Forgets requests for the blocks [first, last).
    void drop_read_ahead(const Region& region, uint32_t first, uint32_t last) noexcept;

    // More is reserved than fits, so frames have to be freed ahead of need.
    bool is_overcommitted() noexcept {
        return virtual_bytes.load(std::memory_order_relaxed) > frames_.frame_budget_bytes();
    }
    // Whether the keeper frees frames before they are needed.
    bool evicts_ahead() noexcept {
        return may_evict_ahead() && is_overcommitted() && frames_.is_eviction_ahead_useful();
    }

    // For the keeper: gives pages to the frames that a growing pool will want next, so that faults
    // need not wait while the kernel finds and clears memory.  False when none are wanted, or none
    // can be had.
    bool populate_ahead() noexcept;
    // For the keeper, while no fork is under way: a piece of what a store with slots has to do in
    // the background.  Whether there is more of it.
    bool tend_store() noexcept;

    // Who changes blocks of adopted memory passes through it.
    Gate& gate() noexcept { return gate_; }
    // For a fork, while the gate is closed.  finish_all_transfers: none is in flight. become_child:
    // transfers that the parent had begun, and its keeper, do not exist here; the program has one
    // thread, and `on_need` is called when it needs local memory of its own.
    void finish_all_transfers() noexcept {
        transfers_.wait_while([&] { return transfers_.read_bytes() > 0 || storing_bytes() > 0; });
    }
    // Clean pages of a block are write-protected, as they were in the parent.
    int protect_again(Region& region, uint32_t index) noexcept;
    void become_child(void (*on_need)(Pager& pager) noexcept) noexcept;
    // The same of a pool that was opened in a child.
    void set_on_need(void (*on_need)(Pager& pager) noexcept) noexcept { on_need_.store(on_need); }

    store::Store& store() noexcept { return store_; }
    FrameTable& frames() noexcept { return frames_; }
    Engine& engine() noexcept { return engine_; }

    std::atomic<uint64_t> virtual_bytes{0};  // of all regions; the pool's
    std::atomic<int> engine_errno{0};        // of the last engine call that failed

private:
    static constexpr uint32_t kRequests = 128;
    static constexpr uint32_t kFailuresMax = 64;
    // Between two attempts at what the kernel has refused.
    static constexpr uint32_t kRefusedPauseUs = 100;
    // Parts beside each other after which a block is taken to be passed through.  Random accesses
    // come upon so many by chance where most of the block is present, which is then no loss.
    static constexpr uint32_t kRunParts = 4;
    static constexpr uint32_t kRunPartsOnShelf = 8;
    // As many parts after which more of a sparse block are had at once: what is read in vain is at
    // most what was needed.
    static constexpr uint32_t kPassageParts = 2;
    // A part is waited for, a block of a stream is there already; what is written would be
    // transferred twice.  So a block is better had as a whole when at least one of so many of its
    // parts was used.  Measured (decision 14).
    static constexpr uint32_t kReadShare = 16;
    static constexpr uint32_t kWrittenShare = 8;
    // Where the next passes need the same parts, these are waited for once.  One part in so many of
    // the budget is for everything else.
    static constexpr uint32_t kRepeatedParts = 4;
    // With one of so many needed in one go, the others are likely to be wanted.
    static constexpr uint32_t kManyShare = 4;
    // Blocks come or leave together where the budget is so many of them at least.
    static constexpr uint64_t kRunShare = 64;

    // A fault, and what it asks for.
    struct Fault {
        Region& region;
        uint32_t index;
        uint32_t part;
        bool write;
        AccessHistory* history;  // nullptr: not the program's access, and the whole block is wanted
        bool random = false;     // a part is enough
        StreamUse use = StreamUse::kNone;  // else a part of a stream's
        bool alone = false;    // it continues no stream: of a sparse block it gets no more
        Passage passage = {};  // through a sparse block
        bool waited = false;
        bool holds = false;  // for a system call: what others hold of a sparse block stays
        int32_t along = 0;   // +1 or -1: its stream is about to fault on the neighbours there
        bool along_written = false;  // and writes to them
    };
    hanare_status make_resident(Fault fault, bool* was_mapped) noexcept;
    bool may_be_over(const Fault& fault, BlockState state) const noexcept;
    void forget(Frame& frame) noexcept;
    static ReadAheadDepth make_depth(uint64_t most_bytes, uint64_t frame_bytes,
                                     uint64_t block_bytes) noexcept;
    uint64_t read_ahead_bytes(const Region& region) noexcept;
    uint32_t read_ahead_blocks(const Region& region, uint64_t bytes) const noexcept;
    void observe(Fault& fault) noexcept;
    static bool is_in_run(const Fault& fault) noexcept;
    static uint64_t present_parts(const Fault& fault) noexcept;
    static Passage passage_of(const Fault& fault) noexcept;
    bool may_sample(const Region& region) noexcept;
    bool is_sample(const Region& region, uint32_t index) noexcept;
    static bool is_passed_through(const Region& region, uint64_t parts) noexcept;
    static bool is_much(const Region& region, uint64_t parts, bool written,
                        uint32_t passes) noexcept;
    bool fits_by_parts(const Region& region, uint64_t parts) noexcept;
    bool ends_parts(const Region& region, const StreamTable::Advice& found) noexcept;
    static void note_passed(const Fault& fault) noexcept;
    void note_use(Frame& sparse, Region& region, uint32_t index, bool written) noexcept;
    void read_ahead(const Fault& fault, const StreamTable::Advice& wanted) noexcept;
    struct Batch {
        std::array<Frame*, FaultTransfers::kBatch> frames;
        size_t count = 0;
        uint64_t bytes = 0;
    };
    void leave_to_keeper(Region& region, uint32_t first, uint32_t count, int32_t step) noexcept;
    FillStart start_ahead(Region& region, uint32_t index, Batch& batch) noexcept;
    void start_batch(Batch& batch) noexcept;
    bool evict_dropped() noexcept;
    // What a stream has read ahead comes with the block that has faulted (runs.cpp).
    hanare_status install_staged(const Fault& fault) noexcept;
    bool add_staged(const Fault& fault, FrameRun& run) noexcept;
    bool begin_staged(Region& region, uint32_t index) noexcept;
    void bring_along(const Fault& fault, uint32_t come) noexcept;
    void mark_behind(Region& region, uint32_t index) noexcept;
    void count_fault(const Fault& fault) noexcept;
    void note_read() noexcept { reads_begun_.fetch_add(1, std::memory_order_relaxed); }
    hanare_status fill(const Fault& fault) noexcept;
    // Where a stream writes what was never written (runs.cpp).
    hanare_status fill_run(const Fault& fault, Frame& frame) noexcept;
    bool begin_untouched(Region& region, uint32_t index) noexcept;
    bool moves_runs(const Region& region) noexcept;
    bool may_work_in_runs(const Region& region) noexcept;
    hanare_status read_block(Region& region, uint32_t index, Frame& frame,
                             uint64_t overlaid) noexcept;
    hanare_status finish_read(Region& region, uint32_t index, const Frame& frame,
                              uint64_t overlaid) noexcept;
    hanare_status verify(Region& region, uint32_t index, const std::byte* memory, uint64_t parts,
                         uint32_t first = 0) noexcept;
    bool accept_staged(Region& region, uint32_t index) noexcept;
    enum class Content { kInSlot, kZeros };
    hanare_status install(Region& region, uint32_t index, bool write,
                          Content content = Content::kInSlot) noexcept;
    hanare_status upgrade(Region& region, uint32_t index) noexcept;
    Frame* take_frame(FrameClass& frame_class, FrameTable::UseAhead use_ahead, bool may_create,
                      hanare_status* failure) noexcept;
    // What a fault needs before it goes on: a frame, or room for a part.
    struct Room {
        Frame* frame = nullptr;
        uint64_t bytes = 0;
        bool found() const { return frame != nullptr || bytes > 0; }
    };
    // For so many bytes of parts; 0: a frame.
    hanare_status obtain_room(Region& region, uint64_t bytes, Room* room) noexcept;
    Room take_room(Region& region, uint64_t bytes, FrameTable::UseAhead use_ahead, bool may_create,
                   hanare_status* failure) noexcept;
    enum class Eviction { kDone, kStarted, kFailed, kNoVictim };
    // `may_start`: what has to be written need not be so when this returns (kStarted).
    Eviction evict_inline(bool prefer_clean, bool may_start, hanare_status* failure) noexcept;
    Eviction evict(Frame& victim, FrameQueue queue, bool may_start,
                   hanare_status* failure) noexcept;
    Eviction evict_one_of(Frame& frame, bool is_out, FaultTransfers::Batch* writes,
                          hanare_status* failure) noexcept;
    hanare_status write_now(Frame& frame) noexcept;
    bool start_write(Frame& frame, FaultTransfers::Batch& writes) noexcept;
    void start_set(WriteSet& set, FaultTransfers::Batch& writes) noexcept;
    void finish_set_write(SetWrite& write, hanare_status status) noexcept;
    void evict_beside(PartReads::Buffer& read) noexcept;
    void prepare_run(Frame& frame) noexcept;
    hanare_status own_place(Region& region, const Frame& frame) noexcept;
    hanare_status copy_parts(Region& region, uint32_t index, uint64_t parts, uint64_t from,
                             uint64_t to) noexcept;
    class SlotUse;
    uint32_t take_slot(const Region& region, uint32_t index) noexcept;
    uint32_t take_new_slot(const Region& region, uint32_t index,
                           std::atomic<uint32_t>& being_taken) noexcept;
    template <typename Allocate>
    uint32_t allocate_slot(std::atomic<uint32_t>& being_taken, Allocate allocate) noexcept;
    uint32_t take_covered_slot(uint32_t preferred, uint32_t block_shift,
                               std::atomic<uint32_t>& being_taken) noexcept;
    void give_up_place(Region& region, uint32_t index) noexcept;
    template <typename Step>
    int retry_after_evictions(Step step) noexcept;
    FilePlace place_of(const Region& region, uint32_t index) const noexcept;
    int take_out(Frame& frame, bool with_content) noexcept;
    hanare_status engine_failed(int os_errno) noexcept;
    void note_still_mapped(Frame& frame, bool was_dirty, int os_errno) noexcept;
    void attach_frame(Region& region, uint32_t index, Frame& frame) noexcept;
    void kick_if_low() noexcept;
    void say_more_is_kept() noexcept;
    void wait_or_exceed(uint32_t seen, uint64_t bytes, uint64_t* stuck_since_ns) noexcept;
    void note_begun(uint64_t bytes) noexcept;
    // Engines that copy need no pages before a block leaves.
    bool populates_ahead() const noexcept { return works_ahead_ && !engine_.copies(); }
    // Round robin evicts on faults only, unless read-ahead needs frames.
    bool may_evict_ahead() const noexcept {
        return works_ahead_ &&
               (read_ahead_blocks_ > 0 || frames_.replacement() != Replacement::kRoundRobin);
    }

    // Sparse blocks (sparse.cpp, shelf.cpp).  kRetry: the block has changed meanwhile, look again.
    enum class Served { kDone, kRetry };
    Served serve_part(Fault& fault, uint32_t word, hanare_status* status,
                      bool* was_mapped) noexcept;
    Served complete(Fault& fault, uint32_t word, hanare_status* status) noexcept;
    hanare_status use_part(const Fault& fault, Frame& frame, bool* was_mapped) noexcept;
    hanare_status take_from_shelf(const Fault& fault, Frame& frame) noexcept;
    bool is_whole_better(const Fault& fault) noexcept;
    int take_run_from_shelf(Frame& frame, uint32_t first, uint32_t parts, bool write) noexcept;
    Frame* split_if_useful(const Fault& fault) noexcept;
    Frame* split(const Fault& fault) noexcept;
    static bool stays_sparse(const Fault& fault) noexcept;
    static bool has_its_parts(Region& region, Frame& sparse) noexcept;
    bool put_on_shelf(Frame& frame) noexcept;
    bool move_to_shelf(Frame& frame, uint64_t parts) noexcept;
    bool copy_to_shelf(Frame& frame, uint64_t parts) noexcept;
    void drop_leftovers(Frame& sparse) noexcept;
    void give_up_parts(Frame& frame, uint32_t set, uint32_t clear) noexcept;
    // Parts of a block beside each other.
    bool is_written_easily(Region& region, uint32_t index) noexcept;
    static PartRun run_that_returns(const Fault& fault, const Frame& frame) noexcept;
    static PartRun run_around(const Fault& fault, const Frame& frame, uint64_t room_bytes) noexcept;
    hanare_status add_parts(const Fault& fault, Frame& frame, uint64_t room_bytes) noexcept;
    hanare_status load_parts(const Fault& fault, PartRun run, PartReads::Buffer& buffer,
                             const std::byte** content) noexcept;
    int install_parts(const Fault& fault, PartRun run, const std::byte* content, bool writable,
                      uint64_t* installed) noexcept;
    // The owner of kExtending: `whole` takes the place of the sparse frame, or, unless `status` is
    // OK and all goes well, is freed.  Leaves the block staged or sparse.
    hanare_status finish_completion(Frame& sparse, Frame& whole, hanare_status status) noexcept;
    int absorb_sparse(Frame& sparse, Frame& whole) noexcept;
    int forbid_writes(const Frame& sparse, uint64_t parts) noexcept;
    void allow_writes(const Frame& sparse) noexcept;
    hanare_status withdraw_sparse(Frame& frame, bool all, bool* dirty) noexcept;
    void finish_sparse_write(Frame& frame, hanare_status status, Park park) noexcept;
    void give_up_sparse(Frame& frame, uint32_t set = 0, uint32_t clear = 0) noexcept;

    store::Store& store_;
    const bool has_checksums_;  // of what is in the store
    Engine& engine_;
    FrameTable& frames_;
    const uint32_t read_ahead_blocks_;
    ReadAheadDepth read_ahead_depth_;
    std::atomic<uint32_t> reads_begun_{0};
    std::atomic<uint64_t> begun_bytes_{0};
    FaultTransfers transfers_;
    PartReads part_reads_;
    WriteSets write_sets_;
    std::atomic<uint64_t> storing_bytes_{0};  // that leave with the writes of the sets
    std::atomic<uint32_t> failed_writes_{0};  // of sets
    std::atomic<hanare_status> write_failure_{HANARE_STATUS_OK};  // the last one's
    std::atomic<uint32_t> hidden_beside_{0};  // since the last block left beside a read
    std::atomic<bool> has_said_more_is_kept_{false};
    std::atomic<uint64_t> exceeded_ns_{0};    // when the budget was exceeded last
    std::atomic<bool> beside_failed_{false};  // the last eviction of the kind
    BufferPool copies_;                       // of parts from one place in the store to another
    Leftovers leftovers_;
    const sys::Mapping zeros_;
    store::SlotTable* slots_ = nullptr;
    uint64_t slot_bytes_ = 0;
    // Slots that threads are about to take, plus one, and how many have not said which.
    static constexpr size_t kSlotsBeingTaken = 32;
    static constexpr uint32_t kSlotUnknown = UINT32_MAX;
    std::array<std::atomic<uint32_t>, kSlotsBeingTaken> slots_being_taken_ = {};
    std::atomic<uint32_t> unnamed_slots_{0};
    Gate gate_;
    std::atomic<void (*)(Pager& pager) noexcept> on_need_{nullptr};
    KeeperSignal* keeper_ = nullptr;
    bool works_ahead_ = false;
    FaultService* fault_service_ = nullptr;

    sys::RankedLock requests_lock_{sys::LockRank::kRequests};
    std::array<ReadAhead, kRequests> requests_ HANARE_GUARDED_BY(requests_lock_);
    uint32_t request_first_ HANARE_GUARDED_BY(requests_lock_) = 0;
    uint32_t request_count_ HANARE_GUARDED_BY(requests_lock_) = 0;
};

// The kernel may refuse one mapping more (vm.max_map_count); every mapped block less leaves room.
template <typename Step>
int Pager::retry_after_evictions(Step step) noexcept {
    int error = step();
    for (uint32_t tries = 0; error == ENOMEM && tries < kFailuresMax; ++tries) {
        hanare_status ignored = HANARE_STATUS_OK;
        const Eviction eviction = evict_inline(false, false, &ignored);
        if (eviction == Eviction::kNoVictim) {
            transfers_.poll();
            sys::yield_for_us(kRefusedPauseUs);
        }
        error = step();
    }
    return error;
}

}  // namespace hanare::pager
