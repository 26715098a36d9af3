// SPDX-License-Identifier: Apache-2.0
//
// Waits: how tasks wait for each other beside locks and barriers of all: condition variables,
// semaphores, and barriers of some tasks.  Each protocol has its own (one_node_waits.hpp,
// home_waits.hpp); what callers may give is checked here.
//
// Any thread, but for meet(): one of each task at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "dsm/protocol.hpp"

namespace hanare::dsm {

inline constexpr uint32_t kConditions = 65536;
inline constexpr uint32_t kSemaphores = 65536;
inline constexpr uint32_t kSemaphoreCountMax = 1u << 30;

class Waits {
public:
    Waits(uint32_t rank, uint32_t size) noexcept : rank_(rank), size_(size) {}
    virtual ~Waits() = default;

    // The calling thread has the lock, and has it again afterwards; after PEER_LOST it has not.
    Result<void> wait(uint32_t lock, uint32_t condition);
    // One thread that waits, who has waited longest, or all.  The calling thread has the lock.
    Result<void> wake(uint32_t lock, uint32_t condition, bool all);

    Result<void> make_semaphore(uint32_t number, uint32_t count);
    Result<void> end_semaphore(uint32_t number);
    Result<void> take(uint32_t number);
    Result<void> post(uint32_t number);

    // The caller's task is among them.
    Result<void> meet(uint32_t id, std::span<const uint32_t> tasks);

protected:
    // `hash` is that of the tasks, never 0; the tasks are in order.
    struct Meeting {
        uint32_t id = 0;
        uint64_t hash = 0;
        std::span<const uint32_t> tasks;
    };

    uint32_t rank() const noexcept { return rank_; }
    uint32_t size() const noexcept { return size_; }

    static std::unexpected<Error> not_held(uint32_t lock);
    static std::unexpected<Error> other_lock(uint32_t condition);
    static std::unexpected<Error> no_semaphore(uint32_t number);
    static std::unexpected<Error> refused(uint32_t number, hanare_status status);
    static std::unexpected<Error> other_group(uint32_t id);

private:
    virtual Result<void> wait_here(uint32_t lock, uint32_t condition) = 0;
    virtual Result<void> wake_here(uint32_t lock, uint32_t condition, bool all) = 0;
    virtual Result<void> make_here(uint32_t number, uint32_t count) = 0;
    virtual Result<void> end_here(uint32_t number) = 0;
    virtual Result<void> take_here(uint32_t number) = 0;
    virtual Result<void> post_here(uint32_t number) = 0;
    virtual Result<void> meet_here(const Meeting& meeting) = 0;

    const uint32_t rank_;
    const uint32_t size_;
};

}  // namespace hanare::dsm
