// SPDX-License-Identifier: Apache-2.0
//
// Condition variables, semaphores and barriers of some tasks, for tasks that have their memory in
// common: words beside those of OneNode, who sleeps as there.
#pragma once

#include <atomic>
#include <cstdint>

#include "dsm/waits.hpp"

namespace hanare::dsm {

class OneNode;

inline constexpr uint32_t kMeetingPlaces = 4096;

// What the tasks have in common, zero at first.
struct OneNodeWaitWords {
    // Threads take tickets in turn and wait until theirs is below `woken`.  All but `lock` is
    // changed under that lock.
    struct Condition {
        std::atomic<uint32_t> lock;  // of who waits, plus one; 0: nobody does
        std::atomic<uint32_t> waiting;
        std::atomic<uint32_t> next;
        std::atomic<uint32_t> woken;
    };
    struct Semaphore {
        std::atomic<uint32_t> count;  // plus one; 0: there is none
        std::atomic<uint32_t> waiting;
    };
    // Of an id and the first task of its group, for ever.
    struct Place {
        alignas(64) std::atomic<uint64_t> key;
        std::atomic<uint64_t> group;  // hash, of those who have arrived
        std::atomic<uint32_t> arrived;
        std::atomic<uint32_t> epoch;
    };
    Condition conditions[kConditions];
    Semaphore semaphores[kSemaphores];
    Place places[kMeetingPlaces];
};

class OneNodeWaits final : public Waits {
public:
    OneNodeWaits(OneNode& node, uint32_t rank, uint32_t size) noexcept
        : Waits(rank, size), node_(node) {}

private:
    Result<void> wait_here(uint32_t lock, uint32_t condition) override;
    Result<void> wake_here(uint32_t lock, uint32_t condition, bool all) override;
    Result<void> make_here(uint32_t number, uint32_t count) override;
    Result<void> end_here(uint32_t number) override;
    Result<void> take_here(uint32_t number) override;
    Result<void> post_here(uint32_t number) override;
    Result<void> meet_here(const Meeting& meeting) override;

    OneNodeWaitWords& words() const noexcept;
    Result<OneNodeWaitWords::Place*> place_of(uint64_t key) const;

    OneNode& node_;
};

}  // namespace hanare::dsm
