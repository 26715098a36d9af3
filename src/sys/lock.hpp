// SPDX-License-Identifier: Apache-2.0
//
// RankedLock: the only lock that a fault handler may take.  Spins briefly, then sleeps on a futex;
// no user code ever holds one.  Ranks order all locks of the process: a thread takes them in
// rising rank only, which debug builds check (HANARE_CHECK_LOCK_RANKS).
//
// A user signal handler that touches far memory may interrupt a thread anywhere.  If that thread
// held a RankedLock the fault would wait for itself; therefore locks are held with all signals
// blocked: fault handlers run so by sigaction's mask, every other caller opens a sys::SignalBlock
// first.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/thread_annotations.hpp"

namespace hanare::sys {

// Lower ranks are taken first.  docs/architecture.md, "Threads and locks".
enum class LockRank : uint32_t {
    kSpace = 10,        // the ranges of a program's memory that was adopted
    kPool = 20,         // a pool's regions
    kRegions = 25,      // changes of the process's region table
    kFrames = 30,       // frame lists and replacement queues
    kStreams = 40,      // a region's stream table; the depth of read-ahead
    kShared = 45,       // lists of blocks of memory that tasks share; who is whose home
    kRequests = 50,     // the queue from faulting threads to the keeper
    kLists = 51,        // what faulting threads start on a store of several in order
    kComposed = 52,     // the same of one with redundancy, which may be in such a list
    kStripes = 53,      // stripes of a store with parity, changed in part
    kFlights = 55,      // what faulting threads have under way with a memory server
    kLinkOrder = 57,    // what goes to a peer by another link
    kLinkSend = 60,     // what goes to a peer
    kLinkReceive = 65,  // what comes from it
    kLeases = 70,       // who has what of a memory server
    kLeaf = 90,
    kPrivateMemory = 95,  // of sys/private_memory.cpp
};

class HANARE_CAPABILITY("lock") RankedLock {
public:
    explicit constexpr RankedLock(LockRank rank) : rank_(static_cast<uint32_t>(rank)) {}
    RankedLock(const RankedLock&) = delete;
    RankedLock& operator=(const RankedLock&) = delete;

    void lock() noexcept HANARE_ACQUIRE() {
        check_order();
        uint32_t free = kFree;
        if (!word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire)) lock_slow();
        note_acquired();
    }

    bool try_lock() noexcept HANARE_TRY_ACQUIRE(true) {
        uint32_t free = kFree;
        if (!word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire)) return false;
        note_acquired();
        return true;
    }

    void unlock() noexcept HANARE_RELEASE();

private:
    static constexpr uint32_t kFree = 0;
    static constexpr uint32_t kHeld = 1;
    static constexpr uint32_t kContended = 2;

    void lock_slow() noexcept;
#if defined(HANARE_CHECK_LOCK_RANKS)
    void check_order() const noexcept;
    void note_acquired() noexcept;
#else
    void check_order() const noexcept {}
    void note_acquired() noexcept {}
#endif

    std::atomic<uint32_t> word_{kFree};
    [[maybe_unused]] const uint32_t rank_;
    [[maybe_unused]] uint32_t outer_rank_ = 0;  // what the holder held before; its own
};

class HANARE_SCOPED_CAPABILITY LockGuard {
public:
    explicit LockGuard(RankedLock& lock) noexcept HANARE_ACQUIRE(lock) : lock_(lock) {
        lock_.lock();
    }
    ~LockGuard() HANARE_RELEASE() { lock_.unlock(); }
    LockGuard(const LockGuard&) = delete;
    LockGuard& operator=(const LockGuard&) = delete;

private:
    RankedLock& lock_;
};

// One turn of a busy wait: pauses, and gives the core away when it has lasted long.  Returns false
// once the caller should sleep instead (about 20 us).
class SpinWait {
public:
    bool spin() noexcept {
        if (turns_ >= kTurnsMax) return false;
        ++turns_;
        __builtin_ia32_pause();
        return true;
    }

private:
    static constexpr uint32_t kTurnsMax = 400;
    uint32_t turns_ = 0;
};

// Gives the core away once (0) or for about so many microseconds; for the rare wait that has no
// event to wait for.  Async-signal-safe.
void yield_for_us(uint32_t duration_us) noexcept;

}  // namespace hanare::sys
