// SPDX-License-Identifier: Apache-2.0
#include "job/rendezvous_client.hpp"

#include "sys/event.hpp"
#include "sys/host_address.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::job {
namespace {

constexpr int kAttempts = 10;
constexpr int kPause_ms = 10;

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
    if (place.protection == fabric::Protection::kSealed) {
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
    stream_.queue({.kind = MessageKind::kPublish, .data = {card.begin(), card.end()}});
    return stream_.flush(deadline);
}

Result<std::vector<std::byte>> RendezvousClient::card_of(uint32_t rank, const Deadline& deadline) {
    if (const auto known = cards_.find(rank); known != cards_.end()) return known->second;
    // An answer that came too late for an earlier question is still to come.
    if (asked_.insert(rank).second) stream_.queue({.kind = MessageKind::kAsk, .rank = rank});
    HANARE_TRY(stream_.flush(deadline));
    for (;;) {
        HANARE_TRY_ASSIGN(Message message, stream_.receive(deadline));
        if (message.kind != MessageKind::kAnswer || asked_.erase(message.rank) == 0) {
            return fail(HANARE_STATUS_SYSTEM, "the rendezvous talks nonsense");
        }
        const bool has_card = message.status() == HANARE_STATUS_OK;
        if (has_card) cards_[message.rank] = std::move(message.data);
        if (message.rank != rank) continue;
        if (has_card) return cards_[rank];
        return fail(HANARE_STATUS_PEER_LOST, "task %u has ended", rank);
    }
}

}  // namespace hanare::job
