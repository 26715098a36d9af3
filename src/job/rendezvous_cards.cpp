// SPDX-License-Identifier: Apache-2.0
//
// What is said at a rendezvous, once a connection is there.
#include <algorithm>
#include <utility>

#include "job/rendezvous_peer.hpp"
#include "job/rendezvous_server.hpp"

namespace hanare::job {
namespace {

// Nobody who does not take answers is asked for more questions.
constexpr size_t kQueuedBytesMax = 64 * 1024;

}  // namespace

// ---- messages

bool RendezvousServer::take_messages(uint32_t number) {
    Peer& peer = *peers_[number];
    for (;;) {
        if (peer.stream->queued_bytes() >= kQueuedBytesMax) {
            if (!flush(number)) return false;
            // Then it goes on when there is room: what has come may be here already.
            if (peer.stream->queued_bytes() >= kQueuedBytesMax) return true;
        }
        Message message;
        const MessageStream::Incoming incoming = peer.stream->receive(message);
        if (incoming == MessageStream::Incoming::kNothing) return flush(number);
        if (incoming != MessageStream::Incoming::kMessage || !take(number, message)) return false;
    }
}

// Whether that was allowed.
bool RendezvousServer::take(uint32_t number, const Message& message) {
    switch (peers_[number]->stage) {
        case Peer::Stage::kStranger: return welcome(number, message);
        case Peer::Stage::kTask: return take_of_task(number, message);
        case Peer::Stage::kAgent: return take_of_agent(*peers_[number], message);
        case Peer::Stage::kHandshake: break;
    }
    return false;
}

// Who is not admitted is told why.
bool RendezvousServer::welcome(uint32_t number, const Message& message) {
    if (message.kind != MessageKind::kJoin && message.kind != MessageKind::kAgent) return false;
    const hanare_status status = admit(number, message);
    peers_[number]->stream->queue({.kind = MessageKind::kWelcome, .value = value_of(status)});
    if (status == HANARE_STATUS_OK) return true;
    (void)peers_[number]->stream->flush();
    return false;
}

hanare_status RendezvousServer::admit(uint32_t number, const Message& message) {
    Peer& peer = *peers_[number];
    if (message.data != data_of(settings_.job_number) || message.rank >= settings_.size) {
        return HANARE_STATUS_INVALID_ARGUMENT;
    }
    peer.rank = message.rank;
    if (message.kind == MessageKind::kAgent) {
        const bool is_possible =
            message.value != 0 && message.value <= settings_.size - message.rank;
        if (!is_possible) return HANARE_STATUS_INVALID_ARGUMENT;
        if (find_agent(message.rank)) return HANARE_STATUS_BUSY;
        peer.stage = Peer::Stage::kAgent;
        peer.count = message.value;
        reports_.push_back({.what = Report::What::kAgentCame, .first_rank = message.rank});
        return HANARE_STATUS_OK;
    }
    if (message.value != settings_.size) return HANARE_STATUS_INVALID_ARGUMENT;
    Task& task = tasks_[message.rank];
    if (task.peer) return HANARE_STATUS_BUSY;
    peer.stage = Peer::Stage::kTask;
    // Another program of the same task begins anew.
    task.peer = number;
    task.is_gone = false;
    task.card.reset();
    return HANARE_STATUS_OK;
}

bool RendezvousServer::take_of_task(uint32_t number, const Message& message) {
    Peer& peer = *peers_[number];
    if (message.kind == MessageKind::kPublish) {
        Task& task = tasks_[peer.rank];
        if (task.card) return false;
        task.card = message.data;
        answer_all(peer.rank);
        return true;
    }
    if (message.kind != MessageKind::kAsk || message.rank >= settings_.size) return false;
    if (!peer.asked.insert(message.rank).second) return false;
    Task& task = tasks_[message.rank];
    if (task.card || task.is_gone) {
        answer(number, message.rank);
    } else {
        task.waiting.push_back(number);
    }
    return true;
}

bool RendezvousServer::take_of_agent(Peer& peer, const Message& message) {
    const bool is_of_it = message.rank >= peer.rank && message.rank - peer.rank < peer.count;
    if (message.kind != MessageKind::kEnded || !is_of_it) return false;
    if (!peer.ended.insert(message.rank).second) return false;
    reports_.push_back({.what = Report::What::kTaskEnded,
                        .first_rank = peer.rank,
                        .rank = message.rank,
                        .wait_status = static_cast<int>(message.value)});
    return true;
}

// ---- cards

void RendezvousServer::answer(uint32_t number, uint32_t rank) {
    const Task& task = tasks_[rank];
    Message message = {.kind = MessageKind::kAnswer, .rank = rank};
    message.value = value_of(task.card ? HANARE_STATUS_OK : HANARE_STATUS_PEER_LOST);
    if (task.card) message.data = *task.card;
    peers_[number]->asked.erase(rank);
    peers_[number]->stream->queue(message);
}

void RendezvousServer::answer_all(uint32_t rank) {
    for (const uint32_t number : std::exchange(tasks_[rank].waiting, {})) {
        answer(number, rank);
        // What does not go now goes when the peer can be written to; one that is lost shows then.
        (void)flush(number);
    }
}

void RendezvousServer::note_end(uint32_t rank) {
    Task& task = tasks_[rank];
    task.is_gone = true;
    if (!task.card) answer_all(rank);
}

bool RendezvousServer::is_finished() const {
    return std::ranges::all_of(tasks_, [](const Task& task) { return task.is_gone; });
}

// ---- agents

std::optional<RendezvousServer::Report> RendezvousServer::take_report() {
    if (reports_.empty()) return std::nullopt;
    const Report report = reports_.front();
    reports_.pop_front();
    return report;
}

std::optional<uint32_t> RendezvousServer::find_agent(uint32_t first_rank) const {
    for (uint32_t number = 0; number < peers_.size(); ++number) {
        const Peer* const peer = peers_[number].get();
        if (peer != nullptr && peer->stage == Peer::Stage::kAgent && peer->rank == first_rank) {
            return number;
        }
    }
    return std::nullopt;
}

bool RendezvousServer::send_signal(uint32_t first_rank, int number) {
    const auto agent = find_agent(first_rank);
    if (!agent) return false;
    peers_[*agent]->stream->queue(
        {.kind = MessageKind::kSignal, .value = static_cast<uint32_t>(number)});
    return flush(*agent);
}

void RendezvousServer::release_agent(uint32_t first_rank) {
    if (const auto agent = find_agent(first_rank)) drop(*agent);
}

}  // namespace hanare::job
