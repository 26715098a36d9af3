// SPDX-License-Identifier: Apache-2.0
//
// FaultService: serves the accesses that wait for an engine's threads (Engine::events).  Several
// threads run it at once, so that one which waits for the store keeps none of the others waiting.
// They take part in nothing else and never touch far memory: whatever a fault waits for is done by
// another fault's thread, the keeper, or a thread inside a call of the API.
//
// An access that cannot be served is refused: the thread gets SIGBUS, and its receiver explains it.
// In a system call there is no signal; so a thread here explains it, after the call has failed.
// The page is readmitted after a while, or at once where too many others wait for that.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "pager/fault/engine.hpp"
#include "pager/fault/faulter.hpp"
#include "sys/event.hpp"
#include "sys/lock.hpp"
#include "sys/thread_state.hpp"
#include "sys/uffd.hpp"
#include "telemetry/raw_line.hpp"

namespace hanare::pager {

class FaultService {
public:
    explicit FaultService(Engine& engine) : engine_(engine), userfault_(*engine.events()) {}

    // The life of a thread, with all signals blocked; returns when the end is posted.
    void run(const sys::WorkWait& work) noexcept;

    // Whether this thread's access to the page was refused, and why; once for each refusal.  For
    // the receiver of its SIGBUS.
    bool take_refusal(uint32_t thread_id, const void* address, FaultOutcome* outcome) noexcept;

private:
    // Faulting threads share these, by their numbers.
    static constexpr uint32_t kFaulters = 64;
    struct alignas(64) Entry {
        std::atomic<bool> in_use{false};
        uint32_t thread_id = 0;
        Faulter faulter{};
    };
    // Refused pages that are not readmitted yet.
    static constexpr uint32_t kRefusals = 64;
    static constexpr uint32_t kLines = 8;
    struct Refusal {
        sys::Userfault::Event event;
        FaultOutcome outcome;
        int64_t since_ms;
        sys::ThreadState state;  // the thread's, then
        bool is_explained;
    };

    // A thread's entry, or one that is forgotten again where two threads share a number.
    class Lease {
    public:
        Lease(FaultService& service, uint32_t thread_id) noexcept;
        ~Lease();
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;

        Faulter& faulter() noexcept { return is_held_ ? entry_.faulter : unknown_; }

    private:
        Entry& entry_;
        const bool is_held_;
        Faulter unknown_{};
    };

    void serve(const sys::Userfault::Event& event) noexcept;
    bool is_missed_by_writer(Region& region, const sys::Userfault::Event& event) noexcept;
    // True when `line` is to be told once the thread that waits for the page was woken.
    bool give_up(Lease& lease, Region& region, const sys::Userfault::Event& event,
                 FaultOutcome outcome, telemetry::RawLine& line) noexcept;
    void wake(const Region& region, std::byte* page) noexcept;
    // May add a line, as readmit() does; the caller calls tell() later.
    void note_refusal(Refusal refusal) noexcept;
    // True when `refusal` now is an older one, whose page nobody else readmits any more.
    bool enter_refusal(Refusal& refusal) noexcept;
    void forget_refusals() noexcept;
    // False: the block is in a state that ends soon.
    bool readmit(Refusal& refusal) noexcept;
    void add_line(const telemetry::RawLine& line) noexcept;
    // Writes lines to standard error, one thread at a time for all: a pipe may be held by a thread
    // that waits for far memory, or by one that ends a region.  The caller is in no region.
    void tell() noexcept;
    bool next_line(telemetry::RawLine& line) noexcept;

    Engine& engine_;
    const sys::Userfault& userfault_;
    std::array<Entry, kFaulters> entries_;
    std::atomic<uint32_t> refusal_count_{0};
    sys::RankedLock lock_{sys::LockRank::kLeaf};
    std::array<Refusal, kRefusals> refusals_ HANARE_GUARDED_BY(lock_) = {};
    std::array<telemetry::RawLine, kLines> lines_ HANARE_GUARDED_BY(lock_);
    uint32_t first_line_ HANARE_GUARDED_BY(lock_) = 0;
    uint32_t line_count_ HANARE_GUARDED_BY(lock_) = 0;
    bool is_telling_ HANARE_GUARDED_BY(lock_) = false;
};

}  // namespace hanare::pager
