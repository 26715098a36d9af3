// SPDX-License-Identifier: Apache-2.0
//
// RendezvousClient: a task's connection to the rendezvous, from join() to its end.  While it lasts
// the rendezvous knows that the task is there; that it is over shows in every call.
//
// By one thread at a time, but for card_of(): any number, of which one that waits holds up no
// other.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "fabric/handshake.hpp"
#include "fabric/secret.hpp"
#include "job/deadline.hpp"
#include "job/environment.hpp"
#include "job/message_stream.hpp"

namespace hanare::job {

// A connection to a rendezvous, to which nothing has been said yet.  PEER_LOST: nobody is there;
// BAD_KEY, PERMISSION (no secret, off loopback), TIMEOUT.
struct RendezvousPlace {
    Endpoint endpoint;  // numeric
    std::optional<fabric::Secret> secret = {};
    fabric::Protection protection = fabric::Protection::kSealed;
};
// What is needed towards that address.
fabric::Protection protection_towards(const std::string& host);
Result<MessageStream> connect_to_rendezvous(const RendezvousPlace& place, const Deadline& deadline);

class RendezvousClient {
public:
    struct Task {
        uint32_t rank = 0;
        uint32_t size = 1;
        uint64_t job_number = 0;
    };
    // BUSY: that rank is there already; INVALID_ARGUMENT: the rendezvous is that of another job.
    static Result<RendezvousClient> join(const RendezvousPlace& place, const Task& task,
                                         const Deadline& deadline);

    // This machine's address in the connection.
    Result<std::string> local_address() const;

    Result<void> publish(std::span<const std::byte> card, const Deadline& deadline);
    Result<std::vector<std::byte>> card_of(uint32_t rank, const Deadline& deadline);

private:
    // Of those who wait one sleeps on the connection, without the lock, and takes for all what
    // comes; the others sleep until something has.
    struct Waiting {
        std::mutex lock;
        std::condition_variable changed;
        bool has_leader = false;  // under lock
    };
    using Guard = std::unique_lock<std::mutex>;

    explicit RendezvousClient(MessageStream stream)
        : waiting_(std::make_unique<Waiting>()), stream_(std::move(stream)) {}
    Result<bool> send_what_goes();
    Result<void> take_what_came();
    Result<void> take(Message message);
    void wait(Guard& guard, bool is_sent, const Deadline& deadline);

    std::unique_ptr<Waiting> waiting_;
    // All under its lock.
    MessageStream stream_;
    std::set<uint32_t> asked_;  // and not answered yet
    std::set<uint32_t> ended_;  // without a card, said since they were asked for last
    std::unordered_map<uint32_t, std::vector<std::byte>> cards_;
};

}  // namespace hanare::job
