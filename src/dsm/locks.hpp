// SPDX-License-Identifier: Apache-2.0
//
// Locks: who has which, between tasks.  Of each lock one task has the token, at first its manager
// (lock modulo tasks).  Who wants it asks the manager who asked last, and that task for the token:
// it comes at once if it is of no use there, else when it is released.  So each task has at most
// one successor, the queue is spread over them, and a task that has the token locks again without
// a message (TreadMarks: Keleher et al. 1994; Naimi, Trehel 1987).
//
// With the token come the positions of the notices that its last holder knew (notices.hpp), and
// then, all at once, the blocks that sections under the lock need (section_use.hpp).
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

class Locks {
public:
    // What the rest of the protocol does at the ends of critical sections.
    struct Actions {
        // What was written is where others find it.
        std::function<hanare_status()> release;
        // What the task `from`, whose positions these are, knows, is known here.
        std::function<hanare_status(uint32_t from, const std::vector<uint64_t>&)> acquire;
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
    // Who asked for it last before `task`; false: this is not its manager.
    bool last_holder(uint32_t number, uint32_t task, uint32_t& last);
    // `task` comes behind this one.  Whether the token goes there at once.
    bool hand_over(uint32_t number, uint32_t task);
    // The token comes from there.
    void take_over(uint32_t number, uint32_t from, std::vector<uint64_t> positions);

private:
    static constexpr uint32_t kNobody = Peers::kNobody;

    struct Lock {
        bool is_here = false;    // the token
        bool is_held = false;    // by a thread of this task
        bool is_wanted = false;  // a thread of this task has asked for the token
        uint32_t successor = kNobody;
        uint32_t last = kNobody;  // of the manager
        uint32_t holder = 0;      // thread
        uint32_t waiting = 0;     // threads of this task
        uint32_t from = 0;        // who has sent the token
        std::vector<uint64_t> positions;
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
    hanare_status ask_for_last(uint32_t number, uint32_t& last);
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
