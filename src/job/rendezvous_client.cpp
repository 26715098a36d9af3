// SPDX-License-Identifier: Apache-2.0
#include "job/rendezvous_client.hpp"

#include <chrono>
#include <utility>

#include "sys/event.hpp"
#include "sys/host_address.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::job {
namespace {

constexpr int kAttempts = 10;
constexpr int kPause_ms = 10;
constexpr int kWaitMsMax = 60'000;

Result<void> judge_welcome(const Message& message, const RendezvousClient::Task& task) {
    if (message.kind != MessageKind::kWelcome) {
        return fail(HANARE_STATUS_SYSTEM, "the rendezvous talks nonsense");
    }
    switch (message.status()) {
        case HANARE_STATUS_OK: return {};
        case HANARE_STATUS_BUSY:
            return fail(HANARE_STATUS_BUSY,
                        "another process is task %u already; each task joins once", task.rank);
        default:
            return fail(HANARE_STATUS_INVALID_ARGUMENT,
                        "the rendezvous is that of another job than one of %u tasks", task.size);
    }
}

// A connection by which each side knows that the other one belongs to the job.
Result<std::unique_ptr<fabric::Transport>> recognise(sys::FileDescriptor socket,
                                                     const RendezvousPlace& place,
                                                     const Deadline& deadline) {
    if (!place.secret) return std::make_unique<fabric::Transport>(std::move(socket));
    HANARE_TRY_ASSIGN(const fabric::SessionKeys keys,
                      fabric::shake_hands(fabric::Handshake::Side::kSource, socket.number(),
                                          *place.secret, place.protection, deadline.left_ms()));
    auto transport = std::make_unique<fabric::Transport>(std::move(socket));
    if (place.protection != fabric::Protection::kAuthenticated) {
        HANARE_TRY(transport->seal_with(keys, fabric::Handshake::Side::kSource,
                                        fabric::Transport::Opening::kStraight));
    }
    return transport;
}

}  // namespace

fabric::Protection protection_towards(const std::string& host) {
    return sys::is_loopback(host) ? fabric::Protection::kAuthenticated
                                  : fabric::Protection::kSealed;
}

Result<MessageStream> connect_to_rendezvous(const RendezvousPlace& place,
                                            const Deadline& deadline) {
    const Endpoint& endpoint = place.endpoint;
    if (!place.secret && !sys::is_loopback(endpoint.host)) {
        return fail(HANARE_STATUS_PERMISSION,
                    "the rendezvous at %.100s, which is not on this machine, needs a secret: "
                    "%s or %s",
                    endpoint.host.c_str(), kSecretDescriptorVariable, kSecretFileVariable);
    }
    for (int attempt = 1;; ++attempt) {
        HANARE_TRY_ASSIGN(sys::FileDescriptor socket,
                          sys::connect_tcp(endpoint.host, endpoint.port, deadline.left_ms()));
        auto transport = recognise(std::move(socket), place, deadline);
        if (transport) return MessageStream(std::move(*transport));
        // Where many come at once, some have to make room for others before they are known.
        const bool may_come_again = transport.error().status == HANARE_STATUS_PEER_LOST &&
                                    attempt < kAttempts && !deadline.is_over();
        if (!may_come_again) return std::unexpected(transport.error());
        sys::wait_until_readable(-1, -1, deadline.left_ms(attempt * kPause_ms));
    }
}

Result<RendezvousClient> RendezvousClient::join(const RendezvousPlace& place, const Task& task,
                                                const Deadline& deadline) {
    HANARE_TRY_ASSIGN(MessageStream stream, connect_to_rendezvous(place, deadline));
    stream.queue({.kind = MessageKind::kJoin,
                  .rank = task.rank,
                  .value = task.size,
                  .data = data_of(task.job_number)});
    HANARE_TRY(stream.flush(deadline));
    HANARE_TRY_ASSIGN(const Message message, stream.receive(deadline));
    HANARE_TRY(judge_welcome(message, task));
    return RendezvousClient(std::move(stream));
}

Result<std::string> RendezvousClient::local_address() const {
    return sys::local_address(stream_.descriptor());
}

Result<void> RendezvousClient::publish(std::span<const std::byte> card, const Deadline& deadline) {
    const Guard guard(waiting_->lock);
    stream_.queue({.kind = MessageKind::kPublish, .data = {card.begin(), card.end()}});
    return stream_.flush(deadline);
}

Result<std::vector<std::byte>> RendezvousClient::card_of(uint32_t rank, const Deadline& deadline) {
    Guard guard(waiting_->lock);
    // What was said to an earlier question: another program of the task may have come since.
    ended_.erase(rank);
    for (;;) {
        if (const auto known = cards_.find(rank); known != cards_.end()) return known->second;
        if (ended_.contains(rank)) return fail(HANARE_STATUS_PEER_LOST, "task %u has ended", rank);
        // An answer that came too late for an earlier question is still to come.
        if (asked_.insert(rank).second) stream_.queue({.kind = MessageKind::kAsk, .rank = rank});
        HANARE_TRY_ASSIGN(const bool is_sent, send_what_goes());
        // Else the leader would wait for what was taken from it.
        if (!waiting_->has_leader) HANARE_TRY(take_what_came());
        if (!asked_.contains(rank)) continue;
        if (deadline.is_over()) {
            return fail(HANARE_STATUS_TIMEOUT, "the rendezvous does not answer in time");
        }
        wait(guard, is_sent, deadline);
    }
}

Result<bool> RendezvousClient::send_what_goes() {
    const Result<void> sent = stream_.flush(Deadline(0));
    if (!sent && sent.error().status != HANARE_STATUS_TIMEOUT) return std::unexpected(sent.error());
    return sent.has_value();
}

Result<void> RendezvousClient::take_what_came() {
    for (;;) {
        auto message = stream_.receive(Deadline(0));
        if (message) {
            HANARE_TRY(take(std::move(*message)));
        } else if (message.error().status == HANARE_STATUS_TIMEOUT) {
            return {};
        } else {
            return std::unexpected(message.error());
        }
    }
}

Result<void> RendezvousClient::take(Message message) {
    if (message.kind != MessageKind::kAnswer || asked_.erase(message.rank) == 0) {
        return fail(HANARE_STATUS_SYSTEM, "the rendezvous talks nonsense");
    }
    if (message.status() == HANARE_STATUS_OK) {
        cards_[message.rank] = std::move(message.data);
    } else {
        ended_.insert(message.rank);
    }
    waiting_->changed.notify_all();
    return {};
}

// For an answer; or until more can be sent.
void RendezvousClient::wait(Guard& guard, bool is_sent, const Deadline& deadline) {
    const bool leads = is_sent && !waiting_->has_leader;
    if (is_sent && !leads) {
        waiting_->changed.wait_for(guard, std::chrono::milliseconds(deadline.left_ms(kWaitMsMax)));
        return;
    }
    if (leads) waiting_->has_leader = true;
    const int socket = stream_.descriptor();
    guard.unlock();
    sys::wait_for_socket(socket, {.to_read = leads, .to_write = !leads}, deadline.left_ms());
    guard.lock();
    if (!leads) return;
    waiting_->has_leader = false;
    // One of the others leads now, if this one's answer has come.
    waiting_->changed.notify_all();
}

}  // namespace hanare::job
