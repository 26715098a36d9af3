// SPDX-License-Identifier: Apache-2.0
#include "fabric/tcp_service.hpp"

#include <algorithm>
#include <cerrno>
#include <new>

#include "sys/clock.hpp"
#include "sys/lock.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::fabric {
namespace {

constexpr uint32_t kListener = UINT32_MAX;
constexpr uint32_t kEnd = UINT32_MAX - 1;
// How often only who was served last is looked at, before all are.
constexpr uint32_t kLooksAtLatest = 8;
constexpr uint32_t kYield_us = 1000;

}  // namespace

Result<std::unique_ptr<TcpService>> TcpService::open(const Settings& settings,
                                                     ExposedRegions& regions) {
    if (!settings.secret && !sys::is_loopback(settings.host)) {
        return fail(HANARE_STATUS_PERMISSION,
                    "listening at %.100s, which other machines may reach, needs a secret",
                    settings.host.c_str());
    }
    HANARE_TRY_ASSIGN(sys::EventFd end, sys::EventFd::open());
    auto service = std::unique_ptr<TcpService>(new TcpService(settings, regions, std::move(end)));
    HANARE_TRY_ASSIGN(service->listener_, sys::listen_tcp(settings.host, settings.port));
    service->spare_ = sys::duplicate(service->listener_);
    HANARE_TRY_ASSIGN(service->port_, sys::port_of(service->listener_));
    HANARE_TRY_ASSIGN(service->ready_, sys::ReadySet::open());
    using For = sys::ReadySet::For;
    int error = service->ready_.add(service->listener_.number(), kListener, For::kReading);
    if (error == 0) error = service->ready_.add(service->end_.number(), kEnd, For::kReading);
    if (error == 0) return service;
    return fail_errno(HANARE_STATUS_SYSTEM, error, "cannot wait for peers");
}

void TcpService::stop() noexcept {
    is_ending_.store(true);
    end_.post();
}

void TcpService::run() noexcept {
    uint64_t served_ns = sys::now_ns();
    while (!is_ending_.load(std::memory_order_relaxed)) {
        if (look()) {
            served_ns = sys::now_ns();
        } else if (sys::now_ns() - served_ns < spin_ns_) {
            __builtin_ia32_pause();
        } else if (look_everywhere()) {
            served_ns = sys::now_ns();
        } else {
            sys::wait_until_readable(ready_.number(), -1, -1);
        }
    }
}

// Who was served last is likely to be next, but others are looked at whatever that one does.
bool TcpService::look() noexcept {
    bool was_there_something = false;
    if (latest_ < peers_.size()) was_there_something = serve(latest_);
    if (++looks_ % kLooksAtLatest == 0 && look_everywhere()) was_there_something = true;
    return was_there_something;
}

bool TcpService::look_everywhere() noexcept {
    const bool was_there_more = with_more_ != 0 && serve_the_rest();
    const int64_t number = ready_.next();
    if (number < 0 || number == kEnd) return was_there_more;
    if (number == kListener) {
        accept();
        return true;
    }
    return serve(static_cast<uint32_t>(number)) || was_there_more;
}

bool TcpService::serve_the_rest() noexcept {
    bool was_there_something = false;
    for (uint32_t number = 0; number < peers_.size(); ++number) {
        if (peers_[number].has_more && serve(number)) was_there_something = true;
    }
    return was_there_something;
}

void TcpService::accept() noexcept {
    sys::FileDescriptor socket = sys::accept_tcp(listener_);
    if (!socket.is_open()) {
        if (errno == EMFILE || errno == ENFILE) turn_away();
        return;
    }
    try {
        add(std::move(socket));
    } catch (const std::bad_alloc&) {
        // Closed: the peer sees that, and may try again.
    }
}

// Who cannot be served would wait, and keep the listener ready, for ever.
void TcpService::turn_away() noexcept {
    spare_.close();
    sys::accept_tcp(listener_).close();
    spare_ = sys::duplicate(listener_);
    // Somebody else was faster.
    if (!spare_.is_open()) sys::yield_for_us(kYield_us);
}

// Nobody can hold a place by saying nothing.
void TcpService::limit_strangers() noexcept {
    size_t strangers = 0;
    Peer* oldest = nullptr;
    for (Peer& peer : peers_) {
        if (peer.connection == nullptr || !peer.connection->is_stranger()) continue;
        ++strangers;
        if (oldest == nullptr || peer.arrival < oldest->arrival) oldest = &peer;
    }
    if (strangers >= kStrangersMax) drop(*oldest);
}

void TcpService::add(sys::FileDescriptor socket) {
    std::optional<Handshake> handshake;
    if (secret_) {
        limit_strangers();
        auto begun =
            Handshake::begin(Handshake::Side::kTarget, socket.number(), *secret_, protection_);
        if (!begun) return;
        handshake.emplace(std::move(*begun));
    }
    auto connection =
        std::make_unique<TcpConnection>(std::move(socket), regions_, std::move(handshake));
    auto place =
        std::ranges::find_if(peers_, [](const Peer& peer) { return peer.connection == nullptr; });
    if (place == peers_.end()) place = peers_.emplace(place);
    const auto number = static_cast<uint32_t>(place - peers_.begin());
    if (ready_.add(connection->descriptor(), number, sys::ReadySet::For::kReading) != 0) return;
    *place = {.connection = std::move(connection), .arrival = ++arrivals_};
}

void TcpService::note_more(Peer& peer, bool has_more) noexcept {
    if (peer.has_more == has_more) return;
    peer.has_more = has_more;
    with_more_ += has_more ? 1 : UINT32_MAX;
}

void TcpService::drop(Peer& peer) noexcept {
    note_more(peer, false);
    // A child of fork() may have the descriptor, too, which would keep it in the set, and open.
    ready_.remove(peer.connection->descriptor());
    sys::shut_down(peer.connection->descriptor());
    peer.connection.reset();
}

// Whether there was something to do.
bool TcpService::serve(uint32_t number) noexcept {
    if (number >= peers_.size() || peers_[number].connection == nullptr) return false;
    Peer& peer = peers_[number];
    const TcpConnection::Outcome outcome = peer.connection->serve();
    if (outcome == TcpConnection::Outcome::kClosed) {
        drop(peer);
        return true;
    }
    const bool is_full = outcome == TcpConnection::Outcome::kFull;
    if (is_full != peer.waits_to_write) {
        ready_.change(peer.connection->descriptor(), number,
                      is_full ? sys::ReadySet::For::kWriting : sys::ReadySet::For::kReading);
        peer.waits_to_write = is_full;
    }
    note_more(peer, outcome == TcpConnection::Outcome::kMore && peer.connection->has_received());
    if (!peer.connection->take_served()) return false;
    latest_ = number;
    return true;
}

}  // namespace hanare::fabric
