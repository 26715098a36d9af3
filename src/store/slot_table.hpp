// SPDX-License-Identifier: Apache-2.0
//
// SlotTable: which slots of a store hold whose blocks, shared by a process and its descendants, so
// that after a fork they go on using each other's stored blocks.  A slot is room for one block of
// the store's file and is held by any number of processes; one that wants to write to a shared one
// takes another and drops it.
//
// The table is one mapping that children inherit.  Every process that takes part has a row, and
// every slot a word with one bit per row: whoever has his bit there holds the slot.  There are no
// locks.  A process may be killed at any instruction: what it held and had half done is known by
// its bits, and sweep(), run by any other, gives it back.
//
// Any thread, also in fault handlers: nothing allocates, throws, waits or touches errno, but for
// create().  From begin_child() until child_started() or child_failed() no other thread of the
// process may be in a function of the table: the child would lack the slots they take.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/result.hpp"
#include "sys/life_lock.hpp"
#include "sys/memory.hpp"

namespace hanare::store {

class SlotTable {
public:
    static constexpr uint32_t kNoSlot = UINT32_MAX;
    static constexpr uint32_t kAnySlot = kNoSlot;
    static constexpr uint32_t kRunSlots = 16;
    static constexpr uint32_t kRows = 64;  // processes at a time
    static constexpr uint32_t kCapacityMax = uint32_t{1} << 30;

    // Called with runs of slots that nobody holds and nobody else can take yet, to give their room
    // on disk back.  Whatever a killed process had in flight there must not arrive later: punching
    // a hole waits for that.
    struct GiveBack {
        void (*function)(void* context, uint32_t first_slot,
                         uint32_t count) noexcept;  // nullptr: none
        void* context;
    };

    // Called with the rows of processes that have ended, one bit each, before their slots become
    // free: nothing that they had in flight may arrive later.  False: they stay as they are.
    struct Fence {
        bool (*function)(void* context, uint64_t rows) noexcept;  // nullptr: none needed
        void* context;
    };

    struct Usage {
        uint32_t used;  // a little off after a process was killed in allocate() or release(),
                        // until it is swept
        uint32_t capacity;
        uint32_t high_water;  // one past the highest slot ever used
    };

    enum class Spread : uint8_t {
        kRuns,   // what has no neighbours yet gets a run of its own: for files, which have holes
        kDense,  // four slots of five are in use, once there are many: where all below the highest
                 // costs
    };

    // A table of slots 0 to capacity - 1, the calling process its first.  `lock_file` is the
    // store's file, one file per table: locks far behind its content tell who is alive.  It is not
    // owned and stays open as long as the table is used, in children, too.
    static Result<SlotTable> create(uint32_t capacity, int lock_file, Fence fence = {},
                                    Spread spread = Spread::kRuns);

    // What the process still holds is given up, as if it had ended.  In a child that was forked
    // without begin_child() it does no harm.
    ~SlotTable();
    SlotTable(SlotTable&&) = default;
    SlotTable& operator=(SlotTable&&) = delete;

    // A slot that nobody held: `preferred` if that is free.  Else, unless that spreads too far, the
    // first of an aligned run of kRunSlots free ones, so that the caller finds room for neighbours
    // beside it; else any.
    // kNoSlot when none is free: sweep() may help.
    uint32_t allocate(uint32_t preferred) noexcept;
    // Any slot below `end`, where the store has no room for others.
    uint32_t allocate_below(uint32_t end) noexcept;

    // Gives up a slot that the process holds.  True when nobody else holds it: then it stays in use
    // until release(), before which the caller gives its room on disk back.
    bool drop(uint32_t slot) noexcept;
    void release(uint32_t slot) noexcept;

    // Whether another process holds it, too.  Only begin_child() makes it true.
    bool is_shared(uint32_t slot) const noexcept;
    // Whether this process holds it.
    bool is_held(uint32_t slot) const noexcept {
        return slot < capacity_ && (masks_[slot].load(std::memory_order_seq_cst) & own_) != 0;
    }

    // Before a fork: lets the child hold every slot that the process holds.  The result is its row;
    // nullopt when kRows processes are alive.  After the fork one of the next three.
    std::optional<uint32_t> begin_child(GiveBack give_back = {}) noexcept;
    // In the parent.
    void child_started(uint32_t row, pid_t pid) noexcept;
    void child_failed(uint32_t row) noexcept;
    // In the child, before it uses the table in any way.
    void become_child(uint32_t row) noexcept;
    // In a child without a row, instead; it uses nothing but the destructor then.
    void abandon_in_child() noexcept;

    // Gives back what processes held that have ended, or have replaced their memory by exec.
    // Returns how many slots became free.  Any process at any time, many at once.
    uint32_t sweep(GiveBack give_back = {}) noexcept;

    // Whether no other process takes part, nor one that has ended and is not swept.  That remains
    // so until begin_child().
    bool is_alone() noexcept;

    Usage usage() const noexcept;
    uint32_t row() const noexcept { return row_; }

private:
    enum class RowState : uint8_t {
        kFree,
        kByLock,    // alive as long as some address space has the row's lock
        kByPid,     // alive as long as the process exists; where the lock could not be taken
        kSweeping,  // dead, and `sweeper` alone clears its bits
        kLeft,      // dead by its own word
    };
    struct alignas(8) Row {
        RowState state;
        uint8_t sweeper;  // a row
        uint16_t
            generation;  // of claims, so that no compare-and-swap takes a new holder for an old
        uint32_t pid;    // 0: not known yet
        bool operator==(const Row&) const = default;
    };
    struct Shared;
    static constexpr uint32_t kNoRow = kRows;

    SlotTable(sys::Mapping memory, uint32_t capacity, int lock_file) noexcept;

    bool take(uint32_t slot) noexcept;
    void raise_high_water(uint32_t slot) noexcept;
    bool is_spread() const noexcept;
    bool is_free_run(uint32_t run) const noexcept;
    uint32_t take_used_run() noexcept;
    uint32_t take_fresh_run() noexcept;
    uint32_t take_noted() noexcept;
    uint32_t take_any() noexcept;
    uint32_t take_below(uint32_t end) noexcept;
    uint32_t set_free(uint32_t first, uint32_t count) noexcept;

    bool sees_locks() const noexcept;
    bool is_dead(uint32_t row, const Row& seen, uint64_t claimed) const noexcept;
    std::optional<uint32_t> claim_row() noexcept;
    uint64_t claim_dead_rows() noexcept;
    bool take_over(uint32_t slot, uint64_t dead) noexcept;
    uint32_t clear_rows(uint64_t dead, GiveBack give_back) noexcept;
    void free_rows(uint64_t dead) noexcept;
    void recount() noexcept;

    sys::Mapping memory_;
    Shared* shared_;
    std::atomic<uint64_t>* masks_;  // one per slot, behind *shared_
    uint32_t capacity_;
    int lock_file_;
    Fence fence_ = {};
    Spread spread_ = Spread::kRuns;

    // The process's own; a child starts with copies.  Written by create() and around a fork only.
    pid_t pid_ = 0;
    uint32_t row_ = kNoRow;
    uint64_t own_ = 0;  // its bit
    sys::LifeLock own_lock_;
    sys::LifeLock starting_lock_;  // of the child, which inherits it
    Row starting_ = {};            // its row as claimed
};

}  // namespace hanare::store
