// SPDX-License-Identifier: Apache-2.0
//
// Locks: who has which, between tasks.  Of each lock one task has the token, at first its manager
// (lock modulo tasks).  Who wants it asks the manager who asked last, and that task for the token:
// it comes at once if it is of no use there, else when it is released; a manager that was last
// itself answers for both.  So each task has at most one successor, the queue is spread over them,
// and a task that has the token locks again without a message (TreadMarks: Keleher et al. 1994;
// Naimi, Trehel 1987).
//
// With the token come the positions of the notices that its last holder knew, and the notices that
// the next one lacks (notices.hpp); what has no room is read afterwards.  Then, all at once, come
// the blocks that sections under the lock need (section_use.hpp).
//
// What peers ask is answered by the thread that serves them; lock() and unlock() are for any
// ordinary thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "dsm/counters.hpp"
#include "dsm/peers.hpp"
#include "dsm/section_use.hpp"

namespace hanare::dsm {

// What is said of the token to who wants it.
struct LockAnswer {
    enum class Token : uint32_t {
        kElsewhere,  // `last` is to be asked
        kComes,      // when it is released here
        kIsYours,    // what comes with it follows
    };
    Token token = Token::kElsewhere;
    uint32_t last = 0;
};

class Locks {
public:
    // What the rest of the protocol does at the ends of critical sections.
    struct Actions {
        // What was written is where others find it.
        std::function<hanare_status()> release;
        // Writes what is known here to `room`: positions, and notices behind those, `told`, that
        // the next holder has.  How many bytes.  Who serves peers may not wait.
        std::function<size_t(std::span<const uint64_t> told, std::span<std::byte> room, bool waits)>
            tell;
        // What the task `from` has told so is known here.
        std::function<hanare_status(uint32_t from, std::span<const uint64_t> told,
                                    std::span<const std::byte> text)>
            acquire;
        std::function<std::vector<uint64_t>()> positions;
        // What of these blocks is not here is fetched, if it can be; and which were missed.
        std::function<void(std::span<const uint32_t>)> fetch;
        std::function<const RecentMisses&()> misses;
        // Whether some task is no more, that one first (Peers::lost()).
        std::function<bool(uint32_t)> find_lost;
    };
    Locks(Peers& peers, Counters& counters, Actions actions)
        : peers_(peers), counters_(counters), actions_(std::move(actions)) {}

    Result<void> lock(uint32_t number);
    Result<void> unlock(uint32_t number);
    // Whether the calling thread has it.
    bool has(uint32_t number);
    const Actions& actions() const noexcept { return actions_; }

    // ---- what peers ask
    // `task`, which knows what is `told`, wants it: a LockAnswer, and what comes with the token,
    // into `room`.  How many bytes; 0: this is not its manager.
    size_t find_last(uint32_t number, uint32_t task, std::span<const uint64_t> told,
                     std::span<std::byte> room);
    // The same of who comes behind this task.
    size_t hand_over(uint32_t number, uint32_t task, std::span<const uint64_t> told,
                     std::span<std::byte> room);
    // The token comes from there.
    void take_over(uint32_t number, uint32_t from, std::span<const std::byte> text);

private:
    static constexpr uint32_t kNobody = Peers::kNobody;

    struct Lock {
        bool is_here = false;    // the token
        bool is_held = false;    // by a thread of this task
        bool is_wanted = false;  // a thread of this task has asked for the token
        uint32_t successor = kNobody;
        std::vector<uint64_t> told;   // by the successor
        uint32_t last = kNobody;      // of the manager
        uint32_t holder = 0;          // thread
        uint32_t waiting = 0;         // threads of this task
        uint32_t from = 0;            // who has sent the token
        std::vector<std::byte> text;  // and what has come with it
        // Of who holds it.  It has come from another task, when so many blocks had been missed.
        bool is_from_elsewhere = false;
        uint64_t misses = 0;
        std::unique_ptr<SectionUse> use;
    };
    uint32_t manager_of(uint32_t number) const noexcept { return number % peers_.size(); }
    Lock& at(uint32_t number);
    Result<void> fetch(uint32_t number, std::unique_lock<std::mutex>& guard);
    void begin_section(Lock& lock);
    void end_section(Lock& lock);
    hanare_status ask(QuestionKind kind, uint32_t number, std::span<const uint64_t> told,
                      uint32_t& asked, std::vector<std::byte>& text);
    hanare_status ask_for_token(uint32_t number, std::span<const uint64_t> told, uint32_t& asked,
                                std::vector<std::byte>& text);
    uint32_t note_last(uint32_t number, uint32_t task);
    Result<void> await(uint32_t number, uint32_t asked, std::unique_lock<std::mutex>& guard);
    std::unexpected<Error> failed(uint32_t number, hanare_status status) const;

    Peers& peers_;
    Counters& counters_;
    const Actions actions_;
    std::mutex lock_;  // all that follows
    std::condition_variable changed_;
    std::unordered_map<uint32_t, Lock> locks_;
};

}  // namespace hanare::dsm
