// SPDX-License-Identifier: Apache-2.0
//
// RendezvousServer: where the tasks of a job leave their cards and ask for those of others, inside
// a process that has something else to do as well.  Agents, which start tasks on other machines,
// come here, too: they tell of ends and are told of signals.
//
// By one thread.  Never waits; a peer that stalls or talks nonsense disturbs nobody else.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "fabric/handshake.hpp"
#include "fabric/secret.hpp"
#include "job/message_stream.hpp"
#include "sys/event.hpp"
#include "sys/file.hpp"

namespace hanare::job {

class RendezvousServer {
public:
    struct Settings {
        std::string host;  // a numeric address of this machine
        uint16_t port = 0;
        // Without, PERMISSION for other hosts than loopback.
        std::optional<fabric::Secret> secret = {};
        // The least that it accepts of who knows the secret.
        fabric::Protection protection = fabric::Protection::kSealed;
        uint32_t size = 1;  // how many tasks there are
        uint64_t job_number = 0;
        // Whoever runs it says by note_end() that a task has ended; otherwise the end of its
        // connection does.
        bool owner_notes_ends = false;
    };
    static Result<std::unique_ptr<RendezvousServer>> open(const Settings& settings);
    ~RendezvousServer();

    // Of those who have not shown that they belong to the job, the oldest makes room for another.
    static constexpr size_t kStrangersMax = 256;

    uint16_t port() const noexcept { return port_; }
    // Readable when there is something for serve().
    int descriptor() const noexcept { return ready_.number(); }
    void serve();

    // Whoever waits for the card of a task that has ended without publishing one is told so.
    void note_end(uint32_t rank);
    // In which order tasks have closed their connections; 0: it has not, or never had one.
    uint64_t departure_of(uint32_t rank) const { return tasks_[rank].departure; }
    // Whether every task has been here and is gone.
    bool is_finished() const;

    struct Report {
        enum class What { kAgentCame, kTaskEnded, kAgentLost } what = What::kAgentCame;
        uint32_t first_rank = 0;  // of the agent
        uint32_t rank = 0;        // of the task that has ended
        int wait_status = 0;
    };
    // What agents have told and has not been taken.
    std::optional<Report> take_report();
    // To the tasks of an agent; false when it is not connected.
    bool send_signal(uint32_t first_rank, int number);
    // Nothing more is wanted from that agent, which ends then.
    void release_agent(uint32_t first_rank);

private:
    struct Peer;
    struct Task {
        std::optional<uint32_t> peer;  // its connection
        bool is_gone = false;
        uint64_t departure = 0;
        std::optional<std::vector<std::byte>> card;
        std::vector<uint32_t> waiting;  // connections that want the card
    };

    explicit RendezvousServer(const Settings& settings);

    void accept();
    void turn_away();
    void limit_strangers();
    void add(sys::FileDescriptor socket);
    void drop(uint32_t number);
    void serve_peer(uint32_t number);
    bool go_on_with_handshake(Peer& peer, uint32_t number);
    void begin_messages(Peer& peer);
    bool take_messages(uint32_t number);
    bool take(uint32_t number, const Message& message);
    bool welcome(uint32_t number, const Message& message);
    hanare_status admit(uint32_t number, const Message& message);
    bool take_of_task(uint32_t number, const Message& message);
    bool take_of_agent(Peer& peer, const Message& message);
    bool flush(uint32_t number);
    void wait_for_writing(Peer& peer, uint32_t number, bool waits);
    void answer(uint32_t number, uint32_t rank);
    void answer_all(uint32_t rank);
    std::optional<uint32_t> find_agent(uint32_t first_rank) const;

    const Settings settings_;
    sys::FileDescriptor listener_;
    sys::FileDescriptor spare_;  // given up to close a connection that there is no descriptor for
    uint16_t port_ = 0;
    sys::ReadySet ready_;
    std::vector<std::unique_ptr<Peer>> peers_;  // by their number in ready_
    std::vector<Task> tasks_;                   // by rank
    std::deque<Report> reports_;
    uint64_t arrivals_ = 0;
    uint64_t departures_ = 0;
};

}  // namespace hanare::job
