// SPDX-License-Identifier: Apache-2.0
//
// eventfd(2): wakes a thread that waits in a ring or in poll(2).  Any thread may post(),
// async-signal-safe; one thread clears.  And epoll(7) as far as a thread needs it that waits for
// work which it shares with others.
#pragma once

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::sys {

class EventFd {
public:
    static Result<EventFd> open();

    int number() const { return file_.number(); }
    const FileDescriptor& file() const { return file_; }
    // Makes the descriptor readable.
    void post() noexcept;
    // Makes it unreadable again; never waits.
    void clear() noexcept;
    void close() noexcept { file_.close(); }

private:
    explicit EventFd(FileDescriptor file) : file_(std::move(file)) {}

    FileDescriptor file_;
};

// Sleeps until one of two descriptors is readable, or the time is over (negative: no limit); either
// may be -1.  Both answers are of that moment.  Async-signal-safe, no cancellation point.
struct Readable {
    bool first = false;
    bool second = false;
};
Readable wait_until_readable(int first, int second, int timeout_ms) noexcept;

// A set of descriptors behind one (epoll), which is readable while one of them is ready.  Each has
// a number of the caller's.  By one thread at a time; nothing allocates.
class ReadySet {
public:
    static Result<ReadySet> open();
    ReadySet() = default;

    int number() const { return file_.number(); }
    enum class For { kReading, kWriting };
    // 0 or an errno value.  What is closed, in every process that has it, leaves the set.
    int add(int descriptor, uint32_t number, For what) noexcept;
    int change(int descriptor, uint32_t number, For what) noexcept;
    void remove(int descriptor) noexcept;
    // One that is ready, or closed by its other side; -1: none.  Never waits.
    int64_t next() const noexcept;
    void close() noexcept { file_.close(); }

private:
    explicit ReadySet(FileDescriptor file) : file_(std::move(file)) {}

    FileDescriptor file_;
};

// Waits for a descriptor to become readable, one of several threads each time, or for the end, all
// of them.  Each thread has its own.
class WorkWait {
public:
    static Result<WorkWait> open(int work, const EventFd& end);

    enum class Woken { kWork, kEnd, kNeither };
    // kNeither: the time is over, or for no reason.  Async-signal-safe, no cancellation point.
    Woken wait(int timeout_ms) const noexcept;

private:
    explicit WorkWait(FileDescriptor file) : file_(std::move(file)) {}

    FileDescriptor file_;
};

}  // namespace hanare::sys
