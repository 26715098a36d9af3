// SPDX-License-Identifier: Apache-2.0
//
// Peer: one task of the job as another one sees it: the way there, once somebody has needed it, and
// the operations that were posted and are not complete.  Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "base/intrusive_list.hpp"
#include "base/result.hpp"
#include "fabric/link.hpp"
#include "job/control_memory.hpp"
#include "job/timed_lock.hpp"

namespace hanare::job {

class Peer;

// An operation that is posted, and waited for later.  The object, and what the operation names, are
// the caller's, and stay until it is complete; each is posted once.
class Posted : public ListLink {
public:
    using Callback = void (*)(void* context, Posted& posted, hanare_status status);

    fabric::Operation operation;
    // Called once, when it is complete, by whoever finds it so, who holds no lock.  It may post,
    // and end the object; another thread that waits for it may be told before the callback is over.
    Callback callback = nullptr;
    void* context = nullptr;

    bool is_complete() const noexcept { return is_complete_.load(std::memory_order_acquire); }
    // Once it is complete.
    hanare_status status() const noexcept { return operation.status(); }

private:
    friend class Peer;
    friend class Communicator;

    Peer* peer_ = nullptr;
    uint64_t ticket_ = 0;
    std::atomic<bool> is_complete_{false};
};

class Peer {
public:
    // How a task is reached, and what it exposes to the others of its job.
    struct Way {
        std::unique_ptr<fabric::Link> link;
        ControlKeys control;
    };
    using Connect = std::function<Result<Way>(uint32_t rank, int timeout_ms)>;

    explicit Peer(uint32_t rank) noexcept : rank_(rank) {}
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    uint32_t rank() const noexcept { return rank_; }
    // The first who asks connects, the others wait.  What went wrong then may go well for the next;
    // a connection that was made is never replaced, since requests may still lie in it.
    Result<const Way*> way(const Connect& connect, uint64_t deadline_ns);
    // Nobody has asked with success: null.
    const Way* known_way() const noexcept { return way_.load(std::memory_order_acquire); }

    // `link` is that of the way, or null: the operation is done, since there is none.
    void post(fabric::Link* link, Posted& posted);
    bool test(Posted& posted);
    hanare_status wait(Posted& posted);

    // Completes what was posted before and is done.
    void complete_what_is_done();
    // Waits until all that was posted before is complete.  TIMEOUT, PEER_LOST.
    hanare_status flush(uint64_t deadline_ns);

    // All operations, and later ones, are PEER_LOST, also on a link that is being made now.
    void end() noexcept;

private:
    void complete(Posted& posted);
    bool complete_first(uint64_t last_ticket);
    uint64_t last_ticket();

    const uint32_t rank_;
    TimedLock connecting_;
    std::unique_ptr<Way> made_;  // by who holds connecting_
    std::atomic<const Way*> way_{nullptr};
    std::atomic<bool> is_ended_{false};

    std::mutex lock_;
    IntrusiveList<Posted> posted_;  // under lock_, in the order in which the link has them
    uint64_t tickets_ = 0;          // under lock_
};

}  // namespace hanare::job
