// SPDX-License-Identifier: Apache-2.0
//
// A connection of a rendezvous, as rendezvous_server.cpp and rendezvous_cards.cpp know it.
#pragma once

#include "job/rendezvous_server.hpp"

namespace hanare::job {

struct RendezvousServer::Peer {
    enum class Stage { kHandshake, kStranger, kTask, kAgent } stage = Stage::kHandshake;
    sys::FileDescriptor socket;  // as long as there is no stream
    std::optional<fabric::Handshake> handshake = {};
    std::unique_ptr<MessageStream> stream = {};
    uint32_t rank = 0;              // of a task; of an agent that of its first one
    uint32_t count = 0;             // of an agent: how many
    std::set<uint32_t> asked = {};  // cards that it waits for
    std::set<uint32_t> ended = {};  // of an agent: its tasks that have ended
    uint64_t arrival = 0;
    bool waits_to_write = false;

    bool is_stranger() const { return stage == Stage::kHandshake || stage == Stage::kStranger; }
    int descriptor() const { return stream ? stream->descriptor() : socket.number(); }
};

}  // namespace hanare::job
