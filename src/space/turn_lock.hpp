// SPDX-License-Identifier: Apache-2.0
//
// A lock among the threads of a task, for code that runs in the place of a system call: no libc, no
// vector registers.  All signals are blocked while it is held, since their handlers may map memory
// too.  Who finds that the holder has been killed takes it over.
#pragma once

#include <atomic>
#include <cstdint>

namespace hanare::space {

class TurnLock {
public:
    void lock() noexcept;
    void unlock() noexcept;

private:
    std::atomic<uint32_t> holder_{0};  // a thread
    uint64_t mask_ = 0;                // of the holder, as it was
};

class TurnGuard {
public:
    explicit TurnGuard(TurnLock& lock) noexcept : lock_(lock) { lock_.lock(); }
    ~TurnGuard() { lock_.unlock(); }
    TurnGuard(const TurnGuard&) = delete;
    TurnGuard& operator=(const TurnGuard&) = delete;

private:
    TurnLock& lock_;
};

}  // namespace hanare::space
