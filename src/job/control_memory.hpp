// SPDX-License-Identifier: Apache-2.0
//
// ControlMemory: what a task exposes to the others of its job so that they can
// act together: words and two queues.  Its keys are on the task's card.  What
// comes by it is not believed: the others are of the same job, but may be
// wrong.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "fabric/exposed_regions.hpp"
#include "job/exposable_memory.hpp"

namespace hanare::job {

// What the others need for it.
struct ControlKeys {
    fabric::Capability words;
    fabric::Capability forwards;     // the queue of what the courier has to put on
    fabric::Capability collectives;  // the queue of those who call collective operations
};

// Acknowledgements of up to 32 others to something that this task has told
// them.
struct AcknowledgementSlot {
    std::atomic<uint32_t> bits;  // one for each who has acknowledged
    uint32_t unused;
    std::atomic<uint64_t> failure;  // the first; set before the bit
};

struct ControlWords {
    static constexpr uint32_t kRoundsMax = 16;  // of a barrier of the largest job
    static constexpr uint32_t kSlots = 256;

    alignas(64) std::atomic<uint32_t> lost;  // a task that is no more, plus one
    alignas(64) std::atomic<uint32_t> forward_bell;
    alignas(64) std::atomic<uint32_t> collective_bell;
    alignas(64) std::atomic<uint32_t> barrier[kRoundsMax];  // the barrier that the
                                                            // other is in
    alignas(64) AcknowledgementSlot slots[kSlots];
};

// As docs/wire.md says.
static_assert(offsetof(ControlWords, forward_bell) == 64);
static_assert(offsetof(ControlWords, collective_bell) == 128);
static_assert(offsetof(ControlWords, barrier) == 192);
static_assert(offsetof(ControlWords, slots) == 256 && sizeof(AcknowledgementSlot) == 16);

class ControlMemory {
public:
    static constexpr size_t kQueueBytes = 64 * 1024;

    static Result<std::unique_ptr<ControlMemory>> expose(fabric::ExposedRegions& regions);

    const ControlKeys& keys() const noexcept { return keys_; }
    ControlWords& words() noexcept {
        return *reinterpret_cast<ControlWords*>(words_.mapping.address());
    }
    std::span<std::byte> forwards() noexcept { return forwards_.memory; }
    std::span<std::byte> collectives() noexcept { return collectives_.memory; }

private:
    ControlMemory() = default;

    ExposableMemory words_;
    ExposableMemory forwards_;
    ExposableMemory collectives_;
    ControlKeys keys_;
};

}  // namespace hanare::job
