// SPDX-License-Identifier: Apache-2.0
//
// eventfd(2): wakes a thread that waits in a ring or in poll(2).  Any thread may post(),
// async-signal-safe; one thread clears.
#pragma once

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::sys {

class EventFd {
public:
    static Result<EventFd> open();

    int number() const { return file_.number(); }
    // Makes the descriptor readable.
    void post() noexcept;
    // Makes it unreadable again; never waits.
    void clear() noexcept;
    void close() noexcept { file_.close(); }

private:
    explicit EventFd(FileDescriptor file) : file_(std::move(file)) {}

    FileDescriptor file_;
};

}  // namespace hanare::sys
