// SPDX-License-Identifier: Apache-2.0
#include "dsm/one_node.hpp"

#include "job/word_wait.hpp"
#include "sys/clock.hpp"
#include "sys/lock.hpp"
#include "sys/own_thread_id.hpp"

namespace hanare::dsm {
namespace {

constexpr uint32_t kSpins = 20'000;  // some hundred microseconds
constexpr uint64_t kPatience_ns = 250 * job::kNsPerMs;

}  // namespace

OneNode::OneNode(job::Communicator& communicator, sys::Mapping words, bool may_spin,
                 Counters& counters)
    : communicator_(communicator),
      lookout_(communicator),
      words_(std::move(words)),
      may_spin_(may_spin),
      counters_(counters),
      holders_(std::make_unique<std::atomic<uint32_t>[]>(kLocks)),
      waits_(*this, communicator.rank(), communicator.size()) {}

Result<void> OneNode::check_alive(uint32_t awaited) {
    const uint32_t tasks = communicator_.size();
    for (uint32_t task = 0; task < tasks; ++task) {
        if (task == communicator_.rank() || (awaited < tasks && task != awaited)) continue;
        if (!lookout_.is_lost(task)) continue;
        lost_ = task;
        return fail(HANARE_STATUS_PEER_LOST, "task %u is no more", task);
    }
    return {};
}

// Who has arrived at a barrier that failed is counted there for ever.
Result<void> OneNode::check_not_lost() const {
    if (lost_ == UINT32_MAX) return {};
    return fail(HANARE_STATUS_PEER_LOST, "task %u is no more", lost());
}

bool OneNode::has(uint32_t lock) const noexcept {
    return holders_[lock].load(std::memory_order_relaxed) == sys::own_thread_id();
}

Result<void> OneNode::wait(std::atomic<uint32_t>& word, uint32_t seen, uint32_t awaited) {
    for (uint32_t i = 0; may_spin_ && i < kSpins; ++i) {
        if (word.load(std::memory_order_acquire) != seen) return {};
        __builtin_ia32_pause();
    }
    while (word.load(std::memory_order_acquire) == seen) {
        const uint64_t until_ns = sys::now_ns() + kPatience_ns;
        job::wait_for_change(word, seen, until_ns, job::Changes::kWaking);
        if (sys::now_ns() >= until_ns && word.load(std::memory_order_acquire) == seen) {
            HANARE_TRY(check_alive(awaited));
        }
    }
    return {};
}

Result<void> OneNode::barrier(uint32_t id) {
    HANARE_TRY(check_not_lost());
    const uint64_t begun_ns = sys::now_ns();
    OneNodeWords& words = this->words();
    const uint32_t tasks = communicator_.size();
    const uint32_t epoch = words.epoch.load(std::memory_order_acquire);
    Counters::add(counters_.barriers);
    uint64_t nobody = 0;
    if (!words.id.compare_exchange_strong(nobody, uint64_t{id} + 1) && nobody != uint64_t{id} + 1) {
        words.wrong[epoch % 2].store(epoch + 1, std::memory_order_relaxed);
    }
    if (words.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == tasks) {
        words.arrived.store(0, std::memory_order_relaxed);
        words.id.store(0, std::memory_order_relaxed);
        words.epoch.store(epoch + 1, std::memory_order_release);
        job::wake_waiters(words.epoch);
    } else {
        HANARE_TRY(wait(words.epoch, epoch, tasks));
    }
    Counters::add(counters_.wait_ns, sys::now_ns() - begun_ns);
    if (words.wrong[epoch % 2].load(std::memory_order_relaxed) != epoch + 1) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "barrier %u: other tasks are at another one", id);
}

Result<void> OneNode::lock(uint32_t lock) {
    const uint32_t thread = sys::own_thread_id();
    if (has(lock)) {
        return fail(HANARE_STATUS_BUSY, "lock %u: this thread has it already", lock);
    }
    std::atomic<uint32_t>& word = words().locks[lock];
    const uint32_t own = communicator_.rank() + 1;
    uint32_t seen = 0;
    uint32_t wanted = own;
    while (!word.compare_exchange_strong(seen, wanted, std::memory_order_acquire)) {
        for (uint32_t i = 0; may_spin_ && i < kSpins && seen != 0; ++i) {
            __builtin_ia32_pause();
            seen = word.load(std::memory_order_relaxed);
        }
        if (seen != 0) {
            const uint32_t asleep = seen | kSleepers;
            if (seen != asleep && !word.compare_exchange_strong(seen, asleep)) {
                seen = 0;
                continue;
            }
            HANARE_TRY(wait(word, asleep, (seen & ~kSleepers) - 1));
            // Others may sleep, too; who has slept does not know.
            wanted = own | kSleepers;
        }
        seen = 0;
    }
    holders_[lock].store(thread, std::memory_order_relaxed);
    Counters::add(counters_.locks);
    return {};
}

Result<void> OneNode::unlock(uint32_t lock) {
    if (!has(lock)) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "lock %u: this thread does not have it", lock);
    }
    holders_[lock].store(0, std::memory_order_relaxed);
    std::atomic<uint32_t>& word = words().locks[lock];
    if ((word.exchange(0, std::memory_order_release) & kSleepers) != 0) job::wake_waiters(word);
    return {};
}

}  // namespace hanare::dsm
