// SPDX-License-Identifier: Apache-2.0
//
// Space: the memory of a program that Hanare keeps for it: mappings in an area of addresses that
// Hanare gives out, the heap behind the program's break, and .bss where it lies.  Answers the
// system calls that map, unmap and protect memory, as the kernel does.
//
// A program that needs little memory never gets any of this: until it has asked for as much as
// SpaceOptions::begin_bytes its calls are the kernel's.
//
// One per process.  Any thread; async-signal-safe in the sense of what it answers: whoever
// interrupts it finds all signals blocked but faults.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.hpp"
#include "base/units.hpp"
#include "intercept/area.hpp"
#include "intercept/far_memory.hpp"
#include "pager/pool.hpp"
#include "sys/lock.hpp"

namespace hanare::intercept {

struct SpaceOptions {
    pager::PoolOptions pool;
    uint64_t begin_bytes = 0;      // asked for, from which on memory is adopted
    uint64_t threshold_bytes = 0;  // of a mapping, to be adopted
};

// A system call that was not for us: the kernel answers it.
inline constexpr int64_t kKernelAnswers = INT64_MIN;

class Space final : public FarMemory {
public:
    explicit Space(const SpaceOptions& options);

    // Whether the program may access what of the range is adopted memory.
    bool may_access(uintptr_t address, size_t bytes) const noexcept override;
    // The region of an area; nullptr if there is none.
    static constexpr size_t kAreas = 3;
    pager::Region* region_at(size_t area) const noexcept {
        return regions_[area].load(std::memory_order_acquire);
    }
    pager::Region* lasting_region(size_t area) const noexcept override { return region_at(area); }
    // The area that the address is of, kAreas if it is of none; to be inlined.
    [[gnu::always_inline]] size_t area_of(uintptr_t address) const noexcept {
        // Branches, which the processor foresees, so that nothing waits for these loads.
        for (size_t area = 0; area < kAreas; ++area) {
            const Bounds& bounds = first_.ranges[area];
            if (address - bounds.begin.load(std::memory_order_relaxed) <
                bounds.bytes.load(std::memory_order_relaxed)) {
                return area;
            }
        }
        return kAreas;
    }
    uint64_t threshold_bytes() const noexcept { return options_.threshold_bytes; }

    bool is_open() const noexcept { return open_.load(std::memory_order_acquire); }
    // Whether memory is adopted, or cannot be; and returns when that is known, for a thread that
    // does nothing else.
    bool is_decided() const noexcept { return is_decided_.load(std::memory_order_acquire) != 0; }
    void wait_until_decided() const noexcept;
    // No memory is adopted from now on; false where some is already.
    bool stand_aside();
    // .bss of the executable, while the process has one thread.
    void adopt_static_memory();

    // The system calls of the same names; a result, a negative errno value or kKernelAnswers.
    int64_t mmap(uintptr_t address, size_t bytes, int protection, int flags, int file,
                 int64_t offset);
    int64_t munmap(uintptr_t address, size_t bytes);
    int64_t mprotect(uintptr_t address, size_t bytes, int protection);
    int64_t mremap(uintptr_t address, size_t bytes, size_t new_bytes, int flags,
                   uintptr_t new_address);
    int64_t madvise(uintptr_t address, size_t bytes, int advice);
    int64_t brk(uintptr_t address);
    int64_t msync(uintptr_t address, size_t bytes, int flags);
    // mlock, mbind and others that change nothing here: -ENOMEM where nothing is mapped.
    int64_t ignore(uintptr_t address, size_t bytes);

    pager::Pool* pool() noexcept { return is_open() ? pool_.get() : nullptr; }
    // Why nothing is adopted although it should be, or, if there is a pool, not everything; empty
    // if nothing failed.
    const char* failure() const noexcept { return failure_; }

    // Around a fork, all signals blocked (fork_steps.cpp): nothing of the space moves from prepare
    // to finish.  prepare: false if there can be no child.  become_child: 0 or an errno value.
    bool prepare_fork(bool* has_row, uint32_t* row) noexcept;
    void finish_fork(bool has_row, uint32_t row, int child) noexcept;
    int become_child(bool has_row, uint32_t row) noexcept;
    // Called in the place of system calls and in faults.
    struct Hooks {
        // Memory is adopted from now on, or cannot be (failure()).
        void (*opened)() noexcept = nullptr;
        // While there is no keeper: a fault needs local memory.
        void (*needs_memory)(pager::Pager& pager) noexcept = nullptr;
        // Much memory is mapped that is not adopted, which somebody should watch.
        void (*needs_keeper)() noexcept = nullptr;
        // Around a fork of who has far memory; `child`: its process, or negative.
        void (*fork_begins)() noexcept = nullptr;
        void (*fork_ended)(int child) noexcept = nullptr;
        // In each child, before it goes on.
        void (*child_began)() noexcept = nullptr;
        // The calling thread has another user, other groups or capabilities.
        void (*has_other_identity)() noexcept = nullptr;
    };
    void set_hooks(const Hooks& hooks);
    const Hooks& hooks() const noexcept { return hooks_; }
    // A thread does in the background what a keeper does from now on; but not in a child of a fork.
    void set_attended() noexcept;
    // Counts memory that is not adopted.  True when somebody should watch it from now on.
    bool note_plain(uint64_t bytes) noexcept {
        if (!is_open() || is_attended_.load(std::memory_order_relaxed)) return false;
        if (bytes == 0) return false;
        const uint64_t before = plain_bytes_.fetch_add(bytes, std::memory_order_relaxed);
        return before + bytes >= plain_bytes_max();
    }
    // Whether the process has, or has had, more than one thread; the keeper's counts.
    bool has_threads() const noexcept {
        return has_threads_.load(std::memory_order_relaxed) || hook::threads_begin_unseen();
    }
    void note_threads() noexcept { has_threads_.store(true, std::memory_order_relaxed); }
    uint64_t forks() const noexcept { return forks_.load(std::memory_order_relaxed); }

    struct Figures {
        uint64_t far_bytes, used_bytes, heap_bytes_peak, static_bytes_peak, mapping_bytes_peak;
    };
    // As it was a moment ago, if somebody is about to change it.  By one thread.
    Figures figures() noexcept;

private:
    enum AreaIndex : size_t { kMappings, kHeap, kStatic };
    class Lock;
    class Foreign;

    void open() HANARE_REQUIRES(lock_);
    Result<void> open_pool() HANARE_REQUIRES(lock_);
    void open_mappings() HANARE_REQUIRES(lock_);
    void open_heap() HANARE_REQUIRES(lock_);
    void ask_while_unattended() noexcept;
    uint64_t plain_bytes_max() const noexcept { return options_.pool.local_bytes / 4; }
    uint64_t area_alignment() const {
        return std::max(options_.pool.block_bytes, uint64_t{kHugePageBytes});
    }
    void look_for_shortage() HANARE_REQUIRES(lock_);
    Result<Area*> adopt(AreaIndex index, sys::Mapping range, uintptr_t front)
        HANARE_REQUIRES(lock_);
    bool has_asked_for(uint64_t bytes) HANARE_REQUIRES(lock_);
    void note_rejected(uintptr_t begin, uintptr_t end) HANARE_REQUIRES(lock_);
    int64_t map_fixed(uintptr_t address, size_t bytes, int protection, int flags, int file,
                      int64_t offset) HANARE_REQUIRES(lock_);
    int64_t map_rest(uintptr_t address, uintptr_t end, int protection, int flags, int file,
                     int64_t offset) HANARE_REQUIRES(lock_);
    int64_t grow_elsewhere(Area& area, uintptr_t address, size_t bytes, size_t new_bytes, int flags,
                           uintptr_t new_address) HANARE_REQUIRES(lock_);
    int64_t set_break(uintptr_t address) HANARE_REQUIRES(lock_);
    int64_t page_out(uintptr_t begin, uintptr_t end);
    // Blocks of an area that the program uses, some of them or more, up to the address `end`.
    struct Piece {
        pager::Region* region;
        uint32_t first;
        uint32_t last;  // one past the end
        uintptr_t end;
    };
    std::optional<Piece> first_usable(uintptr_t begin, uintptr_t end);
    // The first piece of the range that is not Hanare's; empty, at the end: none.
    Range first_of_kernel(uintptr_t begin, uintptr_t end);
    // Calls visit(area, begin, end) for the part of the range in each area; false if some of it is
    // in none.
    template <typename Visit>
    bool for_each_part(uintptr_t begin, uintptr_t end, Visit visit) HANARE_REQUIRES(lock_);
    // Calls visit(begin, end) for the pieces of the range that are in none.
    template <typename Visit>
    void for_each_rest(uintptr_t begin, uintptr_t end, Visit visit) HANARE_REQUIRES(lock_);

    const SpaceOptions options_;
    sys::RankedLock lock_{sys::LockRank::kSpace};
    std::unique_ptr<pager::Pool> pool_;
    std::array<std::optional<Area>, kAreas> areas_;
    std::array<std::atomic<pager::Region*>, kAreas> regions_{};
    std::atomic<bool> open_{false};
    std::atomic<uint32_t> is_decided_{0};  // a futex
    std::atomic<uint64_t> forks_{0};
    Hooks hooks_;
    std::atomic<bool> is_attended_{false};
    std::atomic<bool> has_threads_{false};
    std::atomic<uint64_t> plain_bytes_{0};  // that came since, and are not adopted
    bool failed_ HANARE_GUARDED_BY(lock_) = false;
    uint64_t asked_bytes_ HANARE_GUARDED_BY(lock_) = 0;
    // What was reserved last, for a program that had wished for another place; empty: nothing.
    Range misplaced_ HANARE_GUARDED_BY(lock_) = {};
    bool wishes_count_ HANARE_GUARDED_BY(lock_) = false;
    const uintptr_t first_break_;
    uintptr_t break_ HANARE_GUARDED_BY(lock_);
    uintptr_t kernel_break_ HANARE_GUARDED_BY(lock_) = 0;  // where the heap's area begins
    Figures figures_ = {};
    char failure_[256] = {};
};

}  // namespace hanare::intercept
