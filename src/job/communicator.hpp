// SPDX-License-Identifier: Apache-2.0
//
// Communicator: a task's side of the communication in its job (MBCF): the
// memory that it exposes, the thread that serves it, and operations on the
// memory of the other tasks, which are addressed by (rank, capability, offset).
// A task is connected to when the first operation on it is wanted.
//
// Operations of this task on one other take effect in the order in which they
// were begun, by one thread or by threads that order themselves.  Any thread;
// not async-signal-safe.  In a child of fork every call returns FORKED, and
// nothing of the parent's is ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "fabric/tcp_service.hpp"
#include "job/card.hpp"
#include "job/control_memory.hpp"
#include "job/exposures.hpp"
#include "job/job.hpp"
#include "job/peer.hpp"
#include "job/word_wait.hpp"
#include "sys/fork_mark.hpp"

namespace hanare::job {

class Communicator {
public:
    struct Settings {
        // How long who waits, and who serves, looks for something before it sleeps;
        // 0 where others want the processor.
        uint32_t spin_us = 0;
        int timeout_ms = 30'000;  // of publishing the card
        // Whether tasks of one machine reach each other by way of memory, if both
        // want that.
        bool uses_shared_memory = true;
        // Whether memory that is allocated for it is reached by UCX, if both want
        // that, where UCX does not need the target's part in it.
        bool uses_ucx = false;
        // Who answers what other tasks ask over sockets (fabric/call_handler.hpp); it outlives
        // this.
        fabric::CallHandler* calls = nullptr;
    };
    // A child of fork ends nothing.
    struct End {
        void operator()(Communicator* communicator) const noexcept;
    };
    using Handle = std::unique_ptr<Communicator, End>;

    // The job lives longer.  Returns when the card is published, not when the
    // others have.  NOT_SUPPORTED: UCX is wanted, and is not here.
    static Result<Handle> open(Job& job, const Settings& settings);
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    uint32_t rank() const noexcept { return rank_; }
    uint32_t size() const noexcept { return size_; }
    // FORKED in a child.
    Result<void> check_process() const;
    // Also INVALID_ARGUMENT: no such rank.
    Result<void> check_rank(uint32_t rank) const;

    Exposures& exposures() noexcept { return exposures_; }
    ControlMemory& control() noexcept { return *control_; }

    // Begins and waits.  The error is the operation's status, or why it could not
    // begin.
    Result<void> carry_out(uint32_t rank, fabric::Operation& operation);
    // A put, and behind it a fetch-op that wakes whoever waits for its word,
    // which happens only if the put has succeeded.
    Result<void> put_and_notify(uint32_t rank, fabric::Operation& put, fabric::Operation& notice);

    // Begins it; what goes wrong is its status, if it was possible to ask.
    Result<void> post(uint32_t rank, Posted& posted);
    // Of what was posted here.
    Result<bool> test(Posted& posted);
    Result<void> wait(Posted& posted);
    // Completes what is done.
    Result<void> progress();
    // Returns when all that was posted before is complete, each with its own
    // status.
    Result<void> flush(uint32_t rank, uint64_t deadline_ns);
    Result<void> flush_all(uint64_t deadline_ns);
    // What is begun after it takes effect after what was begun before: so it is
    // in any case, with links that carry things out in order, which all do.
    Result<void> fence(uint32_t rank) const { return check_rank(rank); }

    // The way to a task, connecting if need be.
    Result<const Peer::Way*> way_to(uint32_t rank, uint64_t deadline_ns);
    // All operations are PEER_LOST from now on.
    void end_links() noexcept;

private:
    Communicator(Job& job, const Settings& settings, sys::ForkMark mark);
    ~Communicator();

    Result<void> serve();
    Result<void> publish();
    Peer& peer(uint32_t rank);
    std::vector<Peer*> known_peers();
    Result<Card> card_of(uint32_t rank, int timeout_ms);
    Result<std::unique_ptr<fabric::Link>> link_to(const Card& card, int timeout_ms);
    Result<Peer::Way> connect(uint32_t rank, int timeout_ms);
    Result<void> describe(uint32_t rank, const fabric::Operation& operation) const;

    Job& job_;
    const Settings settings_;
    const sys::ForkMark mark_;
    const uint32_t rank_;
    const uint32_t size_;
    const Peer::Connect connect_;
    Exposures exposures_;
    std::unique_ptr<ControlMemory> control_;
    std::string local_address_;  // empty: none
    std::unique_ptr<fabric::TcpService> service_;
    std::thread server_;

    std::mutex peers_lock_;  // making one
    std::vector<std::atomic<Peer*>> peers_;
    std::vector<std::unique_ptr<Peer>> made_peers_;  // under peers_lock_
    bool are_links_ended_ = false;                   // under peers_lock_
};

}  // namespace hanare::job
