// SPDX-License-Identifier: Apache-2.0
//
// Protocol: how the tasks of a job keep their shared memory consistent, and synchronise.  There are
// several (one_node.hpp, home_protocol.hpp); which one is decided once, by all tasks alike.
//
// Any thread, but for barrier(): one thread of each task, in the same order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"

namespace hanare::dsm {

inline constexpr uint32_t kLocks = 65536;

class Waits;

class Protocol {
public:
    virtual ~Protocol() = default;

    virtual Result<void> barrier(uint32_t id) = 0;
    virtual Result<void> lock(uint32_t lock) = 0;
    virtual Result<void> unlock(uint32_t lock) = 0;
    virtual Waits& waits() noexcept = 0;

    // An access to the program's view of the segment was refused; OK: it is worth another try.  In
    // the thread that made it, with signals blocked: async-signal-safe.
    virtual hanare_status resolve(const std::byte* address, bool write) noexcept = 0;
    // The task that is lost, for the line that says why an access could not be served.
    virtual uint32_t lost() const noexcept = 0;
};

}  // namespace hanare::dsm
