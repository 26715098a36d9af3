// SPDX-License-Identifier: Apache-2.0
//
// Condition variables, semaphores and barriers of some tasks, for tasks that have no memory in
// common.  Each has a manager (its number modulo tasks; of a group its first task), who keeps who
// waits, in order, and answers whoever acts on it with whom it is to tell: the manager itself sends
// nothing.  Who waits is known by its task and a ticket of its own.
//
// With a lock's condition come the notices of the lock, which is handed over as always.  With a
// semaphore and a meeting come positions (notices.hpp): of all that have posted so far, of all that
// have met; of each task's log the rest is read from that task itself, which has all of it.
//
// What peers ask is answered by the thread that serves them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "dsm/locks.hpp"
#include "dsm/peers.hpp"
#include "dsm/waits.hpp"

namespace hanare::dsm {

class HomeWaits final : public Waits {
public:
    HomeWaits(Peers& peers, Locks& locks)
        : Waits(peers.rank(), peers.size()), peers_(peers), locks_(locks) {}

    // Whether the question is for this, and what peers ask then.
    static bool knows(QuestionKind kind) noexcept;
    hanare_status answer(const Question& question, std::span<const std::byte> rest,
                         std::span<std::byte> room, size_t& bytes);

private:
    using Positions = std::vector<uint64_t>;
    struct Waiter {
        uint32_t task = 0;
        uint32_t unused = 0;
        uint64_t ticket = 0;
    };
    struct Condition {
        uint32_t lock = 0;
        std::deque<Waiter> waiters;
    };
    struct Semaphore {
        uint32_t count = 0;
        std::deque<Waiter> waiters;
        Positions positions;
    };
    struct Place {
        uint64_t group = 0;
        uint32_t arrived = 0;
        Positions positions;
    };
    // Into the room of an answer.
    struct Writer;

    Result<void> wait_here(uint32_t lock, uint32_t condition) override;
    Result<void> wake_here(uint32_t lock, uint32_t condition, bool all) override;
    Result<void> make_here(uint32_t number, uint32_t count) override;
    Result<void> end_here(uint32_t number) override;
    Result<void> take_here(uint32_t number) override;
    Result<void> post_here(uint32_t number) override;
    Result<void> meet_here(const Meeting& meeting) override;

    // ---- of who waits
    uint64_t new_ticket();
    Result<Positions> await(uint64_t ticket, uint32_t manager);
    hanare_status ask(uint32_t task, const QuestionText& question, std::span<std::byte> room,
                      size_t& bytes);
    hanare_status tell(const Waiter& waiter, std::span<const uint64_t> positions);
    hanare_status learn(const Positions& positions);
    std::unexpected<Error> failed(const char* what, uint32_t number, hanare_status status) const;
    uint32_t manager_of(uint32_t number) const noexcept { return number % size(); }

    // ---- of managers, under lock_
    hanare_status enqueue(const Question& question);
    hanare_status give_waiters(const Question& question, Writer& out);
    hanare_status make(const Question& question);
    hanare_status end(const Question& question);
    hanare_status take(const Question& question, Writer& out);
    hanare_status post(const Question& question, std::span<const std::byte> rest, Writer& out);
    hanare_status arrive(const Question& question, std::span<const std::byte> rest, Writer& out);
    bool merge(std::span<const std::byte> more, Positions& positions) const;

    Peers& peers_;
    Locks& locks_;
    std::mutex meeting_;  // one thread of this task is at a barrier of some
    std::mutex lock_;     // all that follows
    std::condition_variable changed_;
    uint64_t tickets_ = 0;
    std::unordered_map<uint64_t, std::optional<Positions>> waiting_;  // by ticket; what came
    std::unordered_map<uint32_t, Condition> conditions_;
    std::unordered_map<uint32_t, Semaphore> semaphores_;
    std::unordered_map<uint32_t, Place> places_;
};

}  // namespace hanare::dsm
