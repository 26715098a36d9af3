// SPDX-License-Identifier: Apache-2.0
#include "fabric/tcp_service.hpp"

#include <algorithm>
#include <cerrno>
#include <new>

#include "sys/clock.hpp"
#include "sys/local_socket.hpp"
#include "sys/lock.hpp"
#include "sys/tcp_socket.hpp"
#include "telemetry/log.hpp"

namespace hanare::fabric {
namespace {

constexpr uint32_t kListener = UINT32_MAX;
constexpr uint32_t kEnd = UINT32_MAX - 1;
constexpr uint32_t kLocalListener = UINT32_MAX - 2;
// How often only who was served last is looked at, before all are.
constexpr uint32_t kLooksAtLatest = 8;
constexpr uint32_t kYield_us = 1000;
// Who is always busy looks after strangers, and who has gone, too.
constexpr uint32_t kLooksUntilStrangers = 1 << 16;
// How often who sleeps looks whether strangers take too long, and whether machines that have to
// take answers are still there.
constexpr int kStrangersLookMs = 500;
constexpr int kGoneLookMs = 2000;
constexpr uint64_t kNsPerMs = 1'000'000;
// How often it is told again that descriptors are missing.
constexpr uint64_t kTellEvery_ns = 60'000 * kNsPerMs;

using For = sys::ReadySet::For;

}  // namespace

Result<std::unique_ptr<TcpService>> TcpService::open(const Settings& settings,
                                                     ExposedRegions& regions) {
    if (!settings.secret && !settings.host.empty() && !sys::is_loopback(settings.host)) {
        return fail(HANARE_STATUS_PERMISSION,
                    "listening at %.100s, which other machines may reach, needs a secret",
                    settings.host.c_str());
    }
    HANARE_TRY_ASSIGN(sys::EventFd end, sys::EventFd::open());
    auto service = std::unique_ptr<TcpService>(new TcpService(settings, regions, std::move(end)));
    HANARE_TRY_ASSIGN(service->ready_, sys::ReadySet::open());
    HANARE_TRY(service->listen(settings));
    int error = service->ready_.add(service->end_.number(), kEnd, For::kReading);
    if (error == 0 && service->listener_.is_open()) {
        error = service->ready_.add(service->listener_.number(), kListener, For::kReading);
    }
    if (error == 0 && service->local_listener_.is_open()) {
        error =
            service->ready_.add(service->local_listener_.number(), kLocalListener, For::kReading);
    }
    if (error == 0) return service;
    return fail_errno(HANARE_STATUS_SYSTEM, error, "cannot wait for peers");
}

Result<void> TcpService::listen(const Settings& settings) {
    if (!settings.host.empty()) {
        HANARE_TRY_ASSIGN(listener_, sys::listen_tcp(settings.host, settings.port));
        HANARE_TRY_ASSIGN(port_, sys::port_of(listener_));
    }
    if (!settings.local_address.empty()) {
        HANARE_TRY(regions_.share_page());
        HANARE_TRY_ASSIGN(local_listener_, sys::listen_local(settings.local_address));
    }
    spare_ = sys::duplicate(end_.file());
    return {};
}

void TcpService::stop() noexcept {
    is_ending_.store(true);
    end_.post();
}

void TcpService::run() noexcept {
    if (local_listener_.is_open()) regions_.begin_to_serve();
    uint64_t served_ns = sys::now_ns();
    while (!is_ending_.load(std::memory_order_relaxed)) {
        if (looks_ % kLooksUntilStrangers == 0) drop_whom_to_wait_for_no_more();
        if (look()) {
            served_ns = sys::now_ns();
        } else if (sys::now_ns() - served_ns < spin_ns_) {
            __builtin_ia32_pause();
        } else if (look_everywhere()) {
            served_ns = sys::now_ns();
        } else if (may_sleep()) {
            sys::wait_until_readable(ready_.number(), -1, drop_whom_to_wait_for_no_more());
        }
    }
    if (local_listener_.is_open()) regions_.end_serving();
}

bool TcpService::may_sleep() noexcept {
    leave(latest_);
    return with_more_ == 0;
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
    } else if (number == kLocalListener) {
        accept_local();
    } else {
        return serve_shown(static_cast<uint32_t>(number)) || was_there_more;
    }
    return true;
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
        if (errno == EMFILE || errno == ENFILE) turn_away(listener_);
        return;
    }
    try {
        add(std::move(socket));
    } catch (const std::bad_alloc&) {
        // Closed: the peer sees that, and may try again.
    }
}

void TcpService::accept_local() noexcept {
    errno = 0;
    sys::FileDescriptor socket = sys::accept_local(local_listener_);
    if (!socket.is_open()) {
        if (errno == EMFILE || errno == ENFILE) turn_away(local_listener_);
        return;
    }
    try {
        auto greeting = std::make_unique<LocalGreeting>(std::move(socket), regions_);
        const uint32_t number = free_place();
        if (ready_.add(greeting->descriptor(), number, For::kReading) != 0) return;
        peers_[number] = {
            .greeting = std::move(greeting), .arrival = ++arrivals_, .arrival_ns = sys::now_ns()};
    } catch (const std::bad_alloc&) {
    }
}

// Who cannot be served would wait, and keep the listener ready, for ever.
void TcpService::turn_away(const sys::FileDescriptor& listener) noexcept {
    spare_.close();
    sys::accept_tcp(listener).close();
    spare_ = sys::duplicate(end_.file());
    const uint64_t now = sys::now_ns();
    if (told_ns_ == 0 || now - told_ns_ > kTellEvery_ns) {
        told_ns_ = now;
        telemetry::log(telemetry::LogLevel::kWarn,
                       "no descriptor is left for another connection, which is closed; ulimit -n "
                       "or LimitNOFILE gives more");
    }
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

// Strangers that say nothing, and peers whose machine or network is gone.  In how many milliseconds
// to look after the others again; negative: never, the kernel looks after them.
int TcpService::drop_whom_to_wait_for_no_more() noexcept {
    const uint64_t now = sys::now_ns();
    const bool looks = now - looked_ns_ >= kGoneLookMs * kNsPerMs;
    if (looks) looked_ns_ = now;
    bool are_there_strangers = false;
    bool are_there_others = false;
    for (Peer& peer : peers_) {
        const bool is_stranger = peer.is_stranger();
        const bool is_late = is_stranger && now - peer.arrival_ns > stranger_ns_;
        if (is_late || (looks && peer.is_answered && has_gone(peer))) {
            drop(peer);
            continue;
        }
        are_there_strangers = are_there_strangers || is_stranger;
        are_there_others = are_there_others || peer.is_answered;
    }
    if (are_there_strangers) return kStrangersLookMs;
    return are_there_others ? kGoneLookMs : -1;
}

bool TcpService::has_gone(Peer& peer) noexcept {
    const sys::Delivery delivery = peer.connection->transport().delivery();
    if (delivery == sys::Delivery::kDone) peer.is_answered = false;
    return delivery == sys::Delivery::kUnanswered;
}

void TcpService::add(sys::FileDescriptor socket) {
    std::optional<Handshake> handshake;
    if (!secrets_.empty()) {
        limit_strangers();
        auto begun = Handshake::begin_target(socket.number(), secrets_, protection_);
        if (!begun) return;
        handshake.emplace(std::move(*begun));
    }
    auto connection =
        std::make_unique<TcpConnection>(std::make_unique<Transport>(std::move(socket)), regions_,
                                        Caller{calls_, ++arrivals_, this}, std::move(handshake));
    const uint32_t number = free_place();
    if (ready_.add(connection->descriptor(), number, For::kReading) != 0) return;
    peers_[number] = {
        .connection = std::move(connection), .arrival = arrivals_, .arrival_ns = sys::now_ns()};
}

uint32_t TcpService::free_place() {
    auto place = std::ranges::find_if(peers_, [](const Peer& peer) {
        return peer.connection == nullptr && peer.greeting == nullptr;
    });
    if (place == peers_.end()) place = peers_.emplace(place);
    return static_cast<uint32_t>(place - peers_.begin());
}

void TcpService::note_more(Peer& peer, bool has_more) noexcept {
    if (peer.has_more == has_more) return;
    peer.has_more = has_more;
    with_more_ += has_more ? 1 : UINT32_MAX;
}

void TcpService::drop(Peer& peer) noexcept {
    note_more(peer, false);
    const int descriptor =
        peer.greeting != nullptr ? peer.greeting->descriptor() : peer.connection->descriptor();
    // A child of fork() may have the descriptor, too, which would keep it in the set, and open.
    ready_.remove(descriptor);
    sys::shut_down(descriptor);
    peer.greeting.reset();
    peer.connection.reset();
    peer.is_answered = false;
}

// While another one is served, which stays.
void TcpService::cut_off(uint64_t caller) noexcept {
    const auto peer = std::ranges::find_if(peers_, [caller](const Peer& each) {
        return each.connection != nullptr && each.arrival == caller;
    });
    if (peer != peers_.end()) drop(*peer);
}

void TcpService::greet(uint32_t number) noexcept {
    Peer& peer = peers_[number];
    const LocalGreeting::Outcome outcome = peer.greeting->go_on();
    if (outcome == LocalGreeting::Outcome::kWaits) return;
    if (outcome == LocalGreeting::Outcome::kOver) return drop(peer);
    try {
        auto transport = peer.greeting->take_transport();
        peer.greeting.reset();
        peer.connection = std::make_unique<TcpConnection>(std::move(transport), regions_,
                                                          Caller{calls_, peer.arrival, this});
        leave(number);
    } catch (const std::bad_alloc&) {
        // Closed with the transport.
    }
}

// Its socket has shown something.
bool TcpService::serve_shown(uint32_t number) noexcept {
    if (number >= peers_.size()) return false;
    Peer& peer = peers_[number];
    if (peer.greeting != nullptr) {
        greet(number);
        return true;
    }
    if (peer.connection == nullptr) return false;
    if (peer.connection->transport().is_in_memory()) peer.connection->transport().take_bells();
    return serve(number);
}

// Whether there was something to do.
bool TcpService::serve(uint32_t number) noexcept {
    if (number >= peers_.size() || peers_[number].connection == nullptr) return false;
    Peer& peer = peers_[number];
    Transport& transport = peer.connection->transport();
    const TcpConnection::Outcome outcome = peer.connection->serve();
    if (outcome == TcpConnection::Outcome::kClosed) {
        drop(peer);
        return true;
    }
    const bool is_full = outcome == TcpConnection::Outcome::kFull;
    bool has_more = outcome == TcpConnection::Outcome::kMore && transport.has_received();
    if (transport.is_in_memory()) {
        if (is_full && transport.ask_for_bell({.to_write = true})) has_more = true;
    } else if (is_full != peer.waits_to_write) {
        ready_.change(transport.descriptor(), number, is_full ? For::kWriting : For::kReading);
    }
    peer.waits_to_write = is_full;
    note_more(peer, has_more);
    const bool was_served = peer.connection->take_served();
    if (was_served) {
        peer.is_answered = !transport.is_in_memory();
        make_latest(number);
    } else if (number != latest_) {
        // It may have rung, and what it rang for have been done before.
        leave(number);
    }
    return was_served;
}

// The one that is looked at without being asked to; the others have to ring.
void TcpService::make_latest(uint32_t number) noexcept {
    if (latest_ == number) return;
    leave(latest_);
    latest_ = number;
}

void TcpService::leave(uint32_t number) noexcept {
    if (number >= peers_.size() || peers_[number].connection == nullptr) return;
    Peer& peer = peers_[number];
    // Of one that has to take its answers first, the requests are not wanted.
    if (peer.waits_to_write) return;
    Transport& transport = peer.connection->transport();
    if (transport.is_in_memory() && transport.ask_for_bell({.to_read = true})) {
        note_more(peer, true);
    }
}

}  // namespace hanare::fabric
