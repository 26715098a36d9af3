// SPDX-License-Identifier: Apache-2.0
//
// Collectives: what all tasks of a job call, in the same order: barrier, broadcast, allgather.  Who
// is told something is told by a message in a queue of its control memory; longer data it gets from
// the memory of the task that told it.
//
// A task that is lost shows to whoever waits for it, who tells the others: every collective of the
// job fails from then on with PEER_LOST.  After TIMEOUT a barrier can be called again, and goes on;
// of other collectives some tasks may have what they wanted, and the next one is a new one.
//
// Whoever fails in a broadcast or allgather otherwise tells those below it in the tree, which fail
// at once; for that it may take some seconds longer than its time limit, where others are silent.
// Every call counts, also one that is refused for what it was given, so that what is told is always
// about the same one.
//
// Any thread, one at a time: BUSY.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "job/acknowledgements.hpp"
#include "job/communicator.hpp"
#include "job/lookout.hpp"
#include "job/tree.hpp"

namespace hanare::job {

class Collectives {
public:
    static constexpr uint32_t kArity = 8;
    // What goes with the message itself.
    static constexpr size_t kInlineBytesMax = 1024;

    Collectives(Communicator& communicator, Lookout& lookout, SlotTable& slots) noexcept
        : communicator_(communicator), lookout_(lookout), slots_(slots) {}

    // Returns when all have called it.
    Result<void> barrier(uint64_t deadline_ns);
    // The root's data to all, of as many bytes everywhere: INVALID_ARGUMENT.
    Result<void> broadcast(std::span<std::byte> data, uint32_t root, uint64_t deadline_ns);
    // `all` gets the parts of all tasks, in their order.  Gives a number of this allgather, the
    // same in all tasks.
    Result<uint32_t> allgather(std::span<const std::byte> own, std::span<std::byte> all,
                               uint64_t deadline_ns);
    // Instead of an allgather to which this task has nothing to give, for what it was given itself.
    void refuse_allgather(hanare_status why);

private:
    static constexpr uint32_t kNoSlot = UINT32_MAX;
    // Failed: the parent gives nothing, and wants no acknowledgement; `bytes` says why.
    enum class Kind : uint32_t { kBroadcast = 1, kGather = 2, kFailed = 3 };
    // In the queue.
    struct Message {
        uint32_t number = 0;
        Kind kind = Kind::kBroadcast;
        uint32_t parent = 0;
        uint32_t slot = 0;
        uint32_t index = 0;
        uint32_t is_inline = 0;  // the data follows
        uint64_t bytes = 0;      // of a failure Failure::word()
        fabric::Capability key;  // of the parent's data; of a gather, to put it there
    };
    struct Received {
        Message head;
        std::vector<std::byte> data;
    };
    // What a task with children has for them: memory that is exposed as long as this lives, where
    // they get or put it, and the slot of their acknowledgements.
    struct Family {
        Family(Collectives& owner, const Tree::Place& where, uint64_t deadline)
            : self(owner), place(where), deadline_ns(deadline) {}
        ~Family();
        Family(const Family&) = delete;
        Family& operator=(const Family&) = delete;
        AcknowledgementSlot& words() const;

        Collectives& self;
        const Tree::Place& place;
        const uint64_t deadline_ns;
        std::optional<uint32_t> region;
        std::optional<uint32_t> slot;
        uint32_t expected = 0;  // bits
    };
    Tree::Place place_below(uint32_t root) const;
    Result<void> check_broadcast(std::span<const std::byte> data) const;
    Result<void> check_allgather(std::span<const std::byte> own,
                                 std::span<const std::byte> all) const;
    Failure pass_barrier(uint64_t deadline_ns);
    Failure pass_round(uint32_t round, uint64_t deadline_ns);
    Failure broadcast_now(std::span<std::byte> data, uint32_t root, uint64_t deadline_ns);
    Failure gather_now(std::span<std::byte> all, size_t own_bytes, uint64_t deadline_ns);

    Failure get_from(uint32_t parent, std::span<std::byte> data, uint64_t deadline_ns);
    Failure receive(const Received& told, std::span<std::byte> data, uint64_t deadline_ns);
    Failure give_up_to(const Received& told, std::span<std::byte> all, const Tree::Place& place,
                       size_t own_bytes, uint64_t deadline_ns);
    Failure take(Kind kind, uint32_t parent, uint64_t bytes, uint64_t deadline_ns, Received& told);
    void listen();
    void drain();
    void keep(std::span<const std::byte> message);
    void answer_stale();
    bool is_over(uint32_t number) const noexcept {
        return static_cast<int32_t>(number - over_) <= 0;
    }
    Failure acknowledge(const Message& message, const Failure& failure, uint64_t deadline_ns);

    Failure pass_on(Family& family, Kind kind, std::span<std::byte> data, uint64_t bytes);
    Failure tell(Family& family, Kind kind, std::span<std::byte> data, uint64_t bytes);
    Failure prepare(Family& family, Message& head, std::span<std::byte> data);
    void tell_failure(std::span<const Tree::Child> children, const Failure& failure);
    Failure await(Family& family);

    void end(const Failure& failure);
    Failure known_loss() const noexcept;
    Result<void> outcome(const char* what, const Failure& failure);
    void spread_loss(uint32_t rank);

    Communicator& communicator_;
    Lookout& lookout_;
    SlotTable& slots_;

    std::mutex lock_;  // held by who calls; what follows is that one's
    uint32_t number_ = 0;
    uint32_t over_ = 0;                   // the last one that is over
    std::map<uint32_t, Failure> failed_;  // of those the last ones that have failed here
    std::map<uint32_t, Received> early_;  // what is told about later collectives
    std::vector<Message> stale_;          // about earlier ones, and not acknowledged
    uint32_t barrier_ = 0;
    std::optional<uint32_t> round_;  // of a barrier that has begun
    bool has_spread_loss_ = false;
};

}  // namespace hanare::job
