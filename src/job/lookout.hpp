// SPDX-License-Identifier: Apache-2.0
//
// Lookout: waiting for what other tasks do here, without waiting for those that are no more: who
// takes long is asked for nothing, which shows whether it is there.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "job/acknowledgements.hpp"
#include "job/communicator.hpp"

namespace hanare::job {

class Lookout {
public:
    explicit Lookout(Communicator& communicator) noexcept : communicator_(communicator) {}

    // How long who is awaited may take before it is asked, and between two questions.
    static constexpr uint64_t kPatience_ns = 250 * kNsPerMs;

    struct Wait {
        std::atomic<uint32_t>& word;  // changes, waking, when something has come
        std::function<bool()> has_come;
        // Who has not done it yet, to be asked; may be many, of whom some are asked in turn.
        std::function<void(std::vector<uint32_t>&)> awaited;
        // Whether the loss of a task that somebody else has noticed ends the wait.
        bool heeds_loss = true;
        uint64_t deadline_ns = kNoDeadline;
    };
    // PEER_LOST, and which one; TIMEOUT.
    Failure wait(const Wait& wait);

    // Whether it is known to be no more.  Takes a moment.
    bool is_lost(uint32_t rank);
    // Which task is lost, as far as this task has been told.
    std::optional<uint32_t> told_loss() const noexcept;

private:
    std::optional<uint32_t> find_lost(const std::vector<uint32_t>& awaited);

    Communicator& communicator_;
    std::atomic<uint32_t> asked_{0};
};

}  // namespace hanare::job
