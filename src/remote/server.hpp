// SPDX-License-Identifier: Apache-2.0
//
// Server: one memory server as a store uses it: the connections, the lease, and where in the
// server's memory each byte of the store lies.
//
// A server that has not answered for its time limit, or whose connection has ended, is lost for
// good: all operations end with PEER_LOST, and nothing that it says later is heard (it may have
// become another one since).
//
// Any thread; async-signal-safe, nothing allocates, but for open() and the end.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/thread_annotations.hpp"
#include "fabric/tcp_link.hpp"
#include "lease/ask.hpp"
#include "lease/messages.hpp"
#include "sys/lock.hpp"

namespace hanare::remote {

// How children of a fork that go on with the store get their connections, where they do.
class ChildConnector {
public:
    virtual ~ChildConnector() = default;
    // In the parent, before the fork.  Then one of the next two, also after a failure.
    virtual Result<std::unique_ptr<fabric::TcpLink>> connect_for_child() = 0;
    // In the parent: what else the child was to have is its own.
    virtual void finish_fork() noexcept = 0;
    // In the child.
    virtual void become_child() noexcept = 0;
};

// Which connection: what faulting threads wait for does not queue behind what others have started.
enum class Use : uint32_t {
    kFaults,  // synchronous, any thread
    kKeeper,  // the channel's thread
    kShared,  // started by any thread, completed by one at a time
};
inline constexpr size_t kUses = 3;

class Server {
public:
    static constexpr int kTimeoutMs = 3000;

    struct Settings {
        std::string address;  // "tcp://HOST:PORT", for messages
        std::string client;   // this process's name there
        int timeout_ms = kTimeoutMs;
    };
    using Connect = std::function<Result<std::unique_ptr<fabric::TcpLink>>(Use use)>;
    // STORE_UNAVAILABLE, with the reason: it is not to be reached, it is no memory server, it
    // gives no leases.
    // `children`: of whoever shares the lease with forked children; else nullptr.
    static Result<std::unique_ptr<Server>> open(const Settings& settings, const Connect& connect,
                                                std::unique_ptr<ChildConnector> children = nullptr);
    // Gives the memory back, as the server knows.
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    fabric::TcpLink& link(Use use) noexcept { return *links_[static_cast<size_t>(use)]; }
    // Until the operation is done, which it is when the server is lost; its status.
    hanare_status wait(Use use, fabric::Operation& operation) noexcept;
    uint64_t timeout_ns() const noexcept { return static_cast<uint64_t>(timeout_ms_) * 1'000'000; }
    const std::string& address() const noexcept { return address_; }
    // Of the server, when the lease was opened.
    uint64_t total_bytes() const noexcept { return total_bytes_; }

    // So that there are `end` bytes: STORE_FULL: there are not, as before; STORE_IO: it is lost.
    hanare_status grow(uint64_t end) noexcept;
    uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_acquire); }

    struct Place {
        fabric::Capability capability;
        uint64_t offset = 0;  // in the region
        uint64_t bytes = 0;   // from there to the extent's end; 0: nothing was leased there
    };
    Place place_of(uint64_t offset) const noexcept;

    bool is_lost() const noexcept { return lost_.load(std::memory_order_acquire) != 0; }
    // Of an operation that has failed so, the server is lost.
    void note_failure(hanare_status status) noexcept;
    // Why, for people; nullptr while it is not lost.
    const char* trouble() const noexcept;

    // Whether it has been told to drain: asks it, and it is lost if it does not answer.  Not in
    // fault handlers.
    bool is_draining() noexcept;
    // The same without waiting, as far as it is known: a question is always under way, and as long
    // as the connection is there it may take its time.  By one thread.
    bool is_known_to_drain() noexcept;
    // Ends the lease; nothing is asked of it any more.
    void end() noexcept;

    void abandon_in_child() noexcept;

    // As in store::Store, of whoever has a ChildConnector: processes that share the lease are its
    // members (lease/messages.hpp), by their rows.
    bool has_children() const noexcept { return children_ != nullptr; }
    Result<void> take_part(uint32_t row);
    bool fence(uint64_t rows) noexcept;
    bool prepare_fork(uint32_t row) noexcept;
    void finish_fork() noexcept;
    // Only the connection for faults is there then.
    void become_child() noexcept;

private:
    Server(const Settings& settings, std::unique_ptr<ChildConnector> children);
    Result<void> open_lease(const std::string& client);
    hanare_status join(fabric::TcpLink& link, uint32_t row) noexcept;
    bool take(const lease::Extent& extent, size_t number) noexcept;

    const std::string address_;
    const int timeout_ms_;
    const std::string silent_;
    const std::string gone_;
    const std::string refuses_;
    const std::string babbles_;
    lease::PendingQuestion status_question_;  // outlives the link
    std::array<std::unique_ptr<fabric::TcpLink>, kUses> links_;
    const std::unique_ptr<ChildConnector> children_;
    std::unique_ptr<fabric::TcpLink> childs_link_;  // around a fork
    lease::LeaseId lease_;
    uint64_t total_bytes_ = 0;
    std::atomic<int> lost_{0};  // a status

    // Only the end of what is known changes.
    struct Piece {
        uint64_t begin = 0;
        uint64_t end = 0;
        fabric::Capability capability;
    };
    std::array<Piece, lease::kExtentsMax> pieces_;
    std::atomic<size_t> piece_count_{0};
    std::atomic<uint64_t> bytes_{0};
    sys::RankedLock lock_{sys::LockRank::kLeaf};  // who makes them more
};

}  // namespace hanare::remote
