// SPDX-License-Identifier: Apache-2.0
//
// poll(2) for who waits for several things at once.  Async-signal-safe, nothing allocates.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>

#include "sys/tcp_socket.hpp"

namespace hanare::sys {

class PollSet {
public:
    static constexpr size_t kEntriesMax = 128;

    // False: there is no room for it.
    bool add(int descriptor, Ready wanted) noexcept;
    // Sleeps until one of them is ready, or the time is over (negative: no limit).  No cancellation
    // point.
    void wait(int timeout_ms) noexcept;
    // After wait(), whether that one is ready or closed by its other side.
    bool is_ready(int descriptor) const noexcept;

private:
    std::array<pollfd, kEntriesMax> entries_;
    size_t count_ = 0;
};

}  // namespace hanare::sys
