// SPDX-License-Identifier: Apache-2.0
#include "job/rendezvous_server.hpp"

#include <algorithm>
#include <cerrno>

#include "job/rendezvous_peer.hpp"
#include "sys/lock.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::job {
namespace {

using fabric::Handshake;
using For = sys::ReadySet::For;

constexpr uint32_t kListener = UINT32_MAX;
// Then whoever serves looks at its other work.
constexpr int kEventsAtOnce = 256;
constexpr uint32_t kYield_us = 1000;

}  // namespace

RendezvousServer::RendezvousServer(const Settings& settings)
    : settings_(settings), tasks_(settings.size) {}

RendezvousServer::~RendezvousServer() = default;

Result<std::unique_ptr<RendezvousServer>> RendezvousServer::open(const Settings& settings) {
    if (!settings.secret && !sys::is_loopback(settings.host)) {
        return fail(HANARE_STATUS_PERMISSION,
                    "a rendezvous at %.100s, which other machines may reach, needs a secret",
                    settings.host.c_str());
    }
    std::unique_ptr<RendezvousServer> server(new RendezvousServer(settings));
    HANARE_TRY_ASSIGN(server->listener_, sys::listen_tcp(settings.host, settings.port));
    server->spare_ = sys::duplicate(server->listener_);
    HANARE_TRY_ASSIGN(server->port_, sys::port_of(server->listener_));
    HANARE_TRY_ASSIGN(server->ready_, sys::ReadySet::open());
    const int error = server->ready_.add(server->listener_.number(), kListener, For::kReading);
    if (error == 0) return server;
    return fail_errno(HANARE_STATUS_SYSTEM, error, "cannot wait for tasks");
}

void RendezvousServer::serve() {
    for (int i = 0; i < kEventsAtOnce; ++i) {
        const int64_t number = ready_.next();
        if (number < 0) return;
        if (number == kListener) {
            accept();
        } else {
            serve_peer(static_cast<uint32_t>(number));
        }
    }
}

// ---- connections

void RendezvousServer::accept() {
    sys::FileDescriptor socket = sys::accept_tcp(listener_);
    if (socket.is_open()) {
        add(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE) {
        turn_away();
    }
}

// Who cannot be served would keep the listener ready for ever.
void RendezvousServer::turn_away() {
    spare_.close();
    sys::accept_tcp(listener_).close();
    spare_ = sys::duplicate(listener_);
    // Somebody else was faster.
    if (!spare_.is_open()) sys::yield_for_us(kYield_us);
}

// Nobody can hold a place by saying nothing.
void RendezvousServer::limit_strangers() {
    size_t strangers = 0;
    std::optional<uint32_t> oldest;
    for (uint32_t number = 0; number < peers_.size(); ++number) {
        const Peer* const peer = peers_[number].get();
        if (peer == nullptr || !peer->is_stranger()) continue;
        ++strangers;
        if (!oldest || peer->arrival < peers_[*oldest]->arrival) oldest = number;
    }
    if (strangers >= kStrangersMax) drop(*oldest);
}

void RendezvousServer::add(sys::FileDescriptor socket) {
    limit_strangers();
    auto peer = std::make_unique<Peer>();
    peer->arrival = ++arrivals_;
    peer->socket = std::move(socket);
    if (settings_.secret) {
        auto begun = Handshake::begin(Handshake::Side::kTarget, peer->socket.number(),
                                      *settings_.secret, settings_.protection);
        if (!begun) return;
        peer->handshake.emplace(std::move(*begun));
    } else {
        begin_messages(*peer);
    }
    auto place = std::ranges::find_if(
        peers_, [](const std::unique_ptr<Peer>& each) { return each == nullptr; });
    if (place == peers_.end()) place = peers_.emplace(place);
    const auto number = static_cast<uint32_t>(place - peers_.begin());
    if (ready_.add(peer->descriptor(), number, For::kReading) != 0) return;
    *place = std::move(peer);
}

void RendezvousServer::begin_messages(Peer& peer) {
    peer.stage = Peer::Stage::kStranger;
    peer.stream = std::make_unique<MessageStream>(
        std::make_unique<fabric::Transport>(std::move(peer.socket)));
}

// What it was is known to `tasks_` and `reports_` only afterwards.
void RendezvousServer::drop(uint32_t number) {
    const std::unique_ptr<Peer> peer = std::move(peers_[number]);
    // A child of fork() may have the descriptor, too, which would keep it in the set, and open.
    ready_.remove(peer->descriptor());
    sys::shut_down(peer->descriptor());
    for (const uint32_t rank : peer->asked) std::erase(tasks_[rank].waiting, number);
    if (peer->stage == Peer::Stage::kTask) {
        tasks_[peer->rank].peer.reset();
        tasks_[peer->rank].departure = ++departures_;
        if (!settings_.owner_notes_ends) note_end(peer->rank);
    }
    if (peer->stage == Peer::Stage::kAgent) {
        reports_.push_back({.what = Report::What::kAgentLost, .first_rank = peer->rank});
    }
}

void RendezvousServer::serve_peer(uint32_t number) {
    if (number >= peers_.size() || peers_[number] == nullptr) return;
    Peer& peer = *peers_[number];
    const bool is_good = peer.handshake ? go_on_with_handshake(peer, number) : flush(number);
    // The first message may have come together with the end of the handshake.
    if (!is_good || (!peer.handshake && !take_messages(number))) drop(number);
}

bool RendezvousServer::go_on_with_handshake(Peer& peer, uint32_t number) {
    const Handshake::State state = peer.handshake->go_on();
    wait_for_writing(peer, number, state == Handshake::State::kWaitsToWrite);
    if (state == Handshake::State::kStranger || state == Handshake::State::kLost) return false;
    if (state != Handshake::State::kDone) return true;
    auto transport = std::make_unique<fabric::Transport>(std::move(peer.socket));
    if (peer.handshake->protection() != fabric::Protection::kAuthenticated) {
        const auto keys = peer.handshake->keys();
        if (!keys || !transport->seal_with(*keys, Handshake::Side::kTarget,
                                           fabric::Transport::Opening::kStraight)) {
            peer.stream = std::make_unique<MessageStream>(std::move(transport));
            return false;
        }
    }
    peer.stream = std::make_unique<MessageStream>(std::move(transport));
    peer.stage = Peer::Stage::kStranger;
    peer.handshake.reset();
    return true;
}

void RendezvousServer::wait_for_writing(Peer& peer, uint32_t number, bool waits) {
    if (waits == peer.waits_to_write) return;
    ready_.change(peer.descriptor(), number, waits ? For::kWriting : For::kReading);
    peer.waits_to_write = waits;
}

bool RendezvousServer::flush(uint32_t number) {
    Peer& peer = *peers_[number];
    const int error = peer.stream->flush();
    wait_for_writing(peer, number, error == -EAGAIN);
    return error == 0 || error == -EAGAIN;
}

}  // namespace hanare::job
