// SPDX-License-Identifier: Apache-2.0
//
// TcpLink: this process's operations on the memory of one peer, over a TCP connection of their own
// (the peer's operations on ours have another).  No thread is needed for it: who posts sends, who
// waits receives, for all.  Answers come in the order of the requests, so that what a get brings is
// received straight into its destination.
//
// A peer whose machine or network is gone is lost within some fifteen seconds, to whoever waits or
// tests; one that is stopped only makes deadlines pass.
//
// Any thread; async-signal-safe, nothing allocates.  Operations that were posted are done before
// the link ends.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "base/thread_annotations.hpp"
#include "fabric/link.hpp"
#include "fabric/secret.hpp"
#include "fabric/transport.hpp"
#include "fabric/wire.hpp"
#include "sys/event.hpp"
#include "sys/lock.hpp"

namespace hanare::fabric {

class TcpLink : public Link {
public:
    // Requests without an answer, and the bytes that they and their answers carry, at most: more
    // would lie in the kernel's buffers, and whoever comes then waits behind them.
    static constexpr uint32_t kRequestsMax = 256;
    static constexpr uint64_t kBytesInFlightMax = 512 * 1024;

    struct Settings {
        std::string host;  // a numeric address
        uint16_t port = 0;
        std::optional<Secret> secret;               // which the target knows, too
        std::optional<Protection> protection = {};  // with a secret; default: sealed
        // How long who waits looks for answers before it sleeps; 0 where other threads want the
        // processor.
        uint32_t spin_us = 0;
        int timeout_ms = 30'000;  // of connecting
    };
    // For ordinary threads.  PERMISSION: off loopback without a secret; PEER_LOST: nobody listens
    // there; BAD_KEY: who does not know the
    // secret, or other than here; TIMEOUT; SYSTEM: no more descriptors.
    static Result<std::unique_ptr<TcpLink>> connect(const Settings& settings);
    // In two steps, of which another process may take the first (tcp_connect.cpp): it is what needs
    // the secret, and all that the handshake needs.
    struct Connected {
        sys::FileDescriptor socket;
        std::optional<SessionKeys> keys;              // none: not sealed
        Protection protection = Protection::kSealed;  // with keys
    };
    static Result<Connected> shake_hands_with(const Settings& settings);
    static Result<std::unique_ptr<TcpLink>> over(Connected connected, uint32_t spin_us);
    // Over a connection that was made otherwise.
    static Result<std::unique_ptr<TcpLink>> make(std::unique_ptr<Transport> transport,
                                                 uint32_t spin_us);
    ~TcpLink() override;
    TcpLink(const TcpLink&) = delete;
    TcpLink& operator=(const TcpLink&) = delete;

    void post(Operation& operation) noexcept override;
    bool test(Operation& operation) noexcept override;
    // For who has all signals blocked.  The first two instead of post() for each of several: small
    // requests then go together; the third instead of test().
    void add(Operation& operation) noexcept;
    void send_added() noexcept;
    bool look(Operation& operation) noexcept;
    hanare_status wait(Operation& operation) noexcept override;
    hanare_status carry_out(Operation& operation) noexcept override;
    void end() noexcept override;
    bool is_lost() const noexcept override { return lost_.load(std::memory_order_acquire); }
    // Until it is done or that time has come, which ends nothing; whether it is done.
    bool wait_until(Operation& operation, uint64_t until_ns) noexcept;
    // For who alone uses the link, and waits for other things as well: sleeps until something can
    // be done for what was posted (test()), `other` is readable, or the time is over.
    void await(int other, int timeout_ms) noexcept;
    // Instead, for who waits for many: adds what await() would wait for, or returns false where it
    // would not; end_wait() when that is over.
    bool begin_wait(sys::PollSet& set) noexcept;
    void end_wait() noexcept;
    // In the child of a fork: closes the connection there, which stays the parent's.  Of no more
    // use then; async-signal-safe.
    void abandon_in_child() noexcept {
        transport_->abandon_in_child();
        nudge_.close();
    }
    // Ever: whether the peer does something.  Any thread.
    struct Progress {
        uint64_t bytes = 0;     // that have gone or come
        uint64_t requests = 0;  // that were sent, and that were answered
    };
    Progress progress() const noexcept {
        return {moved_bytes_.load(std::memory_order_relaxed), sent_.load() + answered_.load()};
    }
    // Whether everything that this thread has posted has taken effect, and what it knows others to
    // have posted.
    bool is_idle() const noexcept {
        return !has_unsent_.load() && answered_.load() == sent_.load();
    }

private:
    struct Request {
        RequestHeader header;
        Operation* operation = nullptr;  // null: nobody is interested any more
        uint64_t begin = 0;              // in the operation's range
        // What it occupies while it is in flight.
        uint64_t cost() const noexcept { return header.bytes; }
    };
    struct Incoming {
        AnswerHeader header;
        size_t header_bytes = 0;
        size_t data_bytes = 0;
    };
    static constexpr size_t kEarlyBytes = 2048;

    TcpLink(std::unique_ptr<Transport> transport, uint32_t spin_us, sys::EventFd nudge);

    Request& request(uint64_t number) noexcept { return requests_[number % kRequestsMax]; }

    void start(Operation& operation) noexcept;
    bool queue(Operation& operation) noexcept;
    void note_pumped() noexcept;
    bool make_request() noexcept HANARE_REQUIRES(send_lock_);
    ptrdiff_t send_some() noexcept HANARE_REQUIRES(send_lock_);
    void note_sent(size_t bytes) noexcept HANARE_REQUIRES(send_lock_);
    void pump() noexcept HANARE_REQUIRES(send_lock_);
    void try_to_pump() noexcept;

    std::span<std::byte> destination_of(const Request& request) noexcept
        HANARE_REQUIRES(receive_lock_);
    bool receive() noexcept HANARE_REQUIRES(receive_lock_);
    void receive_early() noexcept HANARE_REQUIRES(receive_lock_);
    ptrdiff_t take_early(std::span<const sys::Part> parts) noexcept HANARE_REQUIRES(receive_lock_);
    bool accept(size_t bytes, std::span<std::byte> destination, bool was_early) noexcept
        HANARE_REQUIRES(receive_lock_);
    bool is_answer_to(const Request& request, uint64_t number) const noexcept
        HANARE_REQUIRES(receive_lock_);
    void finish_request() noexcept HANARE_REQUIRES(receive_lock_);
    bool try_to_receive() noexcept;

    void spin(Operation& operation) noexcept;
    bool turn(const Operation& operation) noexcept;
    void sleep(const Operation& operation, uint64_t until_ns) noexcept;
    void lead(const Operation& operation, int timeout_ms) noexcept;
    bool has_something_to_do() const noexcept;
    void tell_sleepers() noexcept;

    void look_after_peer(uint64_t now_ns) noexcept;
    void look_for_end() noexcept;
    void cancel(Operation& operation) noexcept;
    void lose() noexcept HANARE_REQUIRES(send_lock_, receive_lock_);
    void drop(Operation& operation, hanare_status status) noexcept
        HANARE_REQUIRES(send_lock_, receive_lock_);

    const std::unique_ptr<Transport> transport_;
    const uint64_t spin_ns_;
    std::atomic<bool> lost_{false};
    std::atomic<bool> is_broken_{false};   // the socket; lose() follows
    std::atomic<uint64_t> looked_ns_{0};   // whether the peer answers
    std::atomic<bool> has_unsent_{false};  // requests, or operations without all of theirs
    std::atomic<bool> is_full_{false};     // the socket, for sending
    std::atomic<bool> has_early_{false};   // something in early_
    std::atomic<uint64_t> moved_bytes_{0};
    std::atomic<bool> has_new_room_{false};  // since the holder of send_lock_ looked

    sys::RankedLock send_lock_{sys::LockRank::kLinkSend};
    Operation* first_ HANARE_GUARDED_BY(send_lock_) = nullptr;  // not all requests made
    Operation* last_ HANARE_GUARDED_BY(send_lock_) = nullptr;
    uint64_t made_ HANARE_GUARDED_BY(send_lock_) = 0;      // requests
    size_t sent_bytes_ HANARE_GUARDED_BY(send_lock_) = 0;  // of the first that is not wholly sent
    std::atomic<uint64_t> sent_{0};                        // requests that were wholly sent
    std::atomic<uint64_t> answered_{0};                    // requests that are over
    std::atomic<uint64_t> bytes_in_flight_{0};
    // The sender writes those from made_, the receiver reads those below sent_.
    std::array<Request, kRequestsMax> requests_;

    sys::RankedLock receive_lock_{sys::LockRank::kLinkReceive};
    Incoming incoming_ HANARE_GUARDED_BY(receive_lock_);
    // What came before it was known where it belongs, and behind it room for what nobody wants.
    const std::unique_ptr<std::byte[]> early_;
    size_t early_begin_ HANARE_GUARDED_BY(receive_lock_) = 0;
    size_t early_end_ HANARE_GUARDED_BY(receive_lock_) = 0;

    // Of those who wait one sleeps on the socket and on nudge_, the others on turns_, which changes
    // when something was done and when that one leaves.
    sys::EventFd nudge_;
    std::atomic<bool> has_leader_{false};
    std::atomic<uint32_t> turns_{0};
    std::atomic<uint32_t> followers_{0};
};

}  // namespace hanare::fabric
