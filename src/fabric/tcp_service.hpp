// SPDX-License-Identifier: Apache-2.0
//
// TcpService: what makes the memory that this process exposes reachable, over TCP and for processes
// of this user on this machine.  A thread of its own serves all peers, so that the program may
// compute as long as it likes (MBCF: operations are carried out by the receiving interrupt, not by
// the receiving task).  That thread touches exposed memory with signals blocked: far memory has to
// be pinned.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "fabric/call_handler.hpp"
#include "fabric/exposed_regions.hpp"
#include "fabric/local_greeting.hpp"
#include "fabric/secret.hpp"
#include "fabric/tcp_connection.hpp"
#include "sys/event.hpp"
#include "sys/file.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::fabric {

class TcpService final : private CallerList {
public:
    struct Settings {
        std::string host;  // a numeric address of this machine; empty: no TCP
        uint16_t port = 0;
        // For processes of this user on this machine (sys/local_socket.hpp); empty: none.
        std::string local_address = {};
        // Serves only who knows it.  Without, PERMISSION for other hosts than loopback.
        std::optional<Secret> secret = {};
        // Beside that: whoever asks is told of by the number of its secret, from 1 (CallHandler).
        std::vector<Secret> more_secrets = {};
        // The least that it accepts of who knows the secret; default: sealed, but on loopback.
        std::optional<Protection> protection = {};
        // How long it looks for requests after the last one before it sleeps.
        uint32_t spin_us = 0;
        // How long who has not shown that it knows the secret, or said what it wants, may take.
        int stranger_timeout_ms = 10'000;
        // Who answers what peers ask; null: calls are not supported.  It outlives the service.
        CallHandler* calls = nullptr;
    };
    static Result<std::unique_ptr<TcpService>> open(const Settings& settings,
                                                    ExposedRegions& regions);
    // Of those who have not shown that they know the secret, the oldest makes room for another.
    static constexpr size_t kStrangersMax = 64;

    uint16_t port() const noexcept { return port_; }

    // Serves until stop(); by one thread, with signals blocked.
    void run() noexcept;
    // Any thread, async-signal-safe.
    void stop() noexcept;

private:
    struct Peer {
        std::unique_ptr<LocalGreeting> greeting = {};  // becomes a connection, or ends
        std::unique_ptr<TcpConnection> connection = {};
        bool waits_to_write = false;
        bool has_more = false;     // which its socket does not show
        bool is_answered = false;  // since its kernel was known to have all answers
        uint64_t arrival = 0;
        uint64_t arrival_ns = 0;

        bool is_stranger() const noexcept {
            return greeting != nullptr || (connection != nullptr && connection->is_stranger());
        }
    };

    TcpService(const Settings& settings, ExposedRegions& regions, sys::EventFd end)
        : regions_(regions),
          protection_(settings.protection.value_or(
              settings.host.empty() || sys::is_loopback(settings.host) ? Protection::kAuthenticated
                                                                       : Protection::kSealed)),
          spin_ns_(uint64_t{settings.spin_us} * 1000),
          stranger_ns_(static_cast<uint64_t>(settings.stranger_timeout_ms) * 1'000'000),
          calls_(settings.calls),
          end_(std::move(end)) {
        if (settings.secret) secrets_.push_back(*settings.secret);
        secrets_.insert(secrets_.end(), settings.more_secrets.begin(), settings.more_secrets.end());
    }

    Result<void> listen(const Settings& settings);
    bool look() noexcept;
    bool look_everywhere() noexcept;
    bool serve_the_rest() noexcept;
    bool may_sleep() noexcept;
    void accept() noexcept;
    void accept_local() noexcept;
    void turn_away(const sys::FileDescriptor& listener) noexcept;
    void limit_strangers() noexcept;
    int drop_whom_to_wait_for_no_more() noexcept;
    bool has_gone(Peer& peer) noexcept;
    void note_more(Peer& peer, bool has_more) noexcept;
    void drop(Peer& peer) noexcept;
    void cut_off(uint64_t caller) noexcept override;
    void add(sys::FileDescriptor socket);
    uint32_t free_place();
    void greet(uint32_t number) noexcept;
    bool serve_shown(uint32_t number) noexcept;
    bool serve(uint32_t number) noexcept;
    void make_latest(uint32_t number) noexcept;
    void leave(uint32_t number) noexcept;

    ExposedRegions& regions_;
    std::vector<Secret> secrets_;  // none: everybody of this machine is served
    const Protection protection_;
    const uint64_t spin_ns_;
    const uint64_t stranger_ns_;
    CallHandler* const calls_;
    sys::EventFd end_;
    std::atomic<bool> is_ending_{false};
    sys::FileDescriptor listener_;
    sys::FileDescriptor local_listener_;
    sys::FileDescriptor spare_;  // given up to close a connection that there is no descriptor for
    uint16_t port_ = 0;
    sys::ReadySet ready_;
    std::vector<Peer> peers_;  // by their number in ready_
    uint64_t arrivals_ = 0;
    uint32_t latest_ = 0;  // who was served last
    uint32_t with_more_ = 0;
    uint32_t looks_ = 0;
    uint64_t looked_ns_ = 0;  // whether peers' machines answer
    uint64_t told_ns_ = 0;    // that there are no descriptors
};

}  // namespace hanare::fabric
