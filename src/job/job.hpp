// SPDX-License-Identifier: Apache-2.0
//
// Job: the tasks that were started together, and how they find each other: ranks, the secret that
// they share, and a card of each (a few bytes that say how it is reached) which the others can ask
// for.  Whoever started them carries the cards: `hanare launch`, PMIx, PMI-1, Slurm; without any of
// these there is one task.
//
// For one ordinary thread at a time, but for card_of().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "fabric/secret.hpp"

namespace hanare::job {

class Job {
public:
    static constexpr size_t kCardBytesMax = 256;
    static constexpr uint32_t kTasksMax = 65536;

    // The one that the environment speaks of, in this order: HANARE_* variables, PMIx, PMI-1,
    // Slurm; else a job of this task alone.  Once in a process.
    static Result<std::unique_ptr<Job>> join(int timeout_ms);
    virtual ~Job() = default;

    // Who carries the cards: "hanare", "pmix", "pmi1", "slurm", "single".
    virtual const char* launcher() const noexcept = 0;
    virtual uint32_t rank() const noexcept = 0;
    virtual uint32_t size() const noexcept = 0;
    // None: only this machine's tasks can be reached.
    virtual const std::optional<fabric::Secret>& secret() const noexcept = 0;
    // A numeric address of this machine at which the other tasks can reach this one.
    virtual const std::string& host() const noexcept = 0;

    // Once, before card_of().  TIMEOUT; SYSTEM: whoever carries the cards is gone; PEER_LOST: a
    // task is.
    virtual Result<void> publish(std::span<const std::byte> card, int timeout_ms) = 0;
    // Waits until that task has published.  INVALID_ARGUMENT: no such rank; TIMEOUT; PEER_LOST:
    // that task has ended without; SYSTEM: whoever carries the cards is gone, which says nothing of
    // the task.  Any thread; one that waits for a task's card holds up none that asks for
    // another's.
    virtual Result<std::vector<std::byte>> card_of(uint32_t rank, int timeout_ms) = 0;
};

}  // namespace hanare::job
