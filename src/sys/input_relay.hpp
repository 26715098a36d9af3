// SPDX-License-Identifier: Apache-2.0
//
// Hands what comes on one descriptor on to another, up to its end, without ever waiting: its owner
// waits, for one descriptor at a time.  Whoever uses it ignores SIGPIPE.  By one thread.
#pragma once

#include <array>
#include <cstddef>

#include "sys/file.hpp"

namespace hanare::sys {

class InputRelay {
public:
    // `from` stays the caller's; `to` is closed at the end of `from`, or when nobody reads.
    InputRelay(int from, FileDescriptor to) noexcept;

    bool is_over() const noexcept { return !to_.is_open(); }
    // What it waits for: one of the two, to read or to write.
    int descriptor() const noexcept { return begin_ == end_ ? from_ : to_.number(); }
    bool waits_to_read() const noexcept { return begin_ == end_; }
    // It would read from our terminal, which is another process group's at the moment: reading, or
    // trying to, would stop this process (SIGTTIN).  Nothing tells when that is over.
    bool is_held_back() const noexcept;
    // When that is ready.  Nothing happens while it is held back.
    void go_on() noexcept;

private:
    const int from_;
    FileDescriptor to_;
    std::array<std::byte, 16384> held_;
    size_t begin_ = 0;
    size_t end_ = 0;
};

}  // namespace hanare::sys
