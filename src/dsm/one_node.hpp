// SPDX-License-Identifier: Apache-2.0
//
// OneNode: tasks of one machine, which have the shared memory in common: one file that all of them
// map.  The processor keeps it consistent, nothing is caught or sent; barriers and locks are words
// in a second file.  Waiting threads look for a while where there are processors for all tasks, and
// then sleep; who sleeps looks now and then whether the others are still there.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "dsm/counters.hpp"
#include "dsm/one_node_waits.hpp"
#include "dsm/protocol.hpp"
#include "job/lookout.hpp"
#include "sys/memory.hpp"

namespace hanare::dsm {

// What the tasks have in common, zero at first.
struct OneNodeWords {
    alignas(64) std::atomic<uint32_t> arrived;
    alignas(64) std::atomic<uint32_t> epoch;
    std::atomic<uint64_t> id;        // of this barrier, as the first has it, plus one
    std::atomic<uint32_t> wrong[2];  // some task has another one; of epochs in turns, plus one
    // 0: free; else the holder's rank plus one, and whether somebody sleeps.
    alignas(64) std::atomic<uint32_t> locks[kLocks];
    alignas(64) OneNodeWaitWords waits;
};

class OneNode final : public Protocol {
public:
    // `words` shows the common file.
    OneNode(job::Communicator& communicator, sys::Mapping words, bool may_spin, Counters& counters);

    Result<void> barrier(uint32_t id) override;
    Result<void> lock(uint32_t lock) override;
    Result<void> unlock(uint32_t lock) override;
    Waits& waits() noexcept override { return waits_; }
    // Every access is possible; who is refused one has none of the memory any more.
    hanare_status resolve(const std::byte*, bool) noexcept override {
        return HANARE_STATUS_NO_MEMORY;
    }
    uint32_t lost() const noexcept override { return lost_.load(); }

private:
    friend class OneNodeWaits;
    static constexpr uint32_t kSleepers = 1u << 31;

    OneNodeWords& words() const noexcept {
        return *reinterpret_cast<OneNodeWords*>(words_.address());
    }
    // Until the word is not `seen` any more.  `awaited`: PEER_LOST when that task is no more; of
    // all tasks where it is the number of tasks.
    Result<void> wait(std::atomic<uint32_t>& word, uint32_t seen, uint32_t awaited);
    Result<void> check_alive(uint32_t awaited);
    // Who waits for all tasks after a loss waits for ever.
    Result<void> check_not_lost() const;
    // Whether the calling thread has it.
    bool has(uint32_t lock) const noexcept;

    job::Communicator& communicator_;
    job::Lookout lookout_;
    const sys::Mapping words_;
    const bool may_spin_;
    Counters& counters_;
    std::atomic<uint32_t> lost_{UINT32_MAX};
    // Threads of this task, by lock.
    std::unique_ptr<std::atomic<uint32_t>[]> holders_;
    OneNodeWaits waits_;
};

}  // namespace hanare::dsm
