// SPDX-License-Identifier: Apache-2.0
//
// A lock that a child of fork finds free although a thread of its parent held it: that thread does
// not exist there.  What it left half done stays so.  For rare, short work.  Not async-signal-safe
// unless signals are blocked while it is held; any thread.
#pragma once

#include <sys/types.h>

#include <atomic>

#include "base/thread_annotations.hpp"

namespace hanare::sys {

class HANARE_CAPABILITY("lock") ProcessLock {
public:
    constexpr ProcessLock() = default;
    ProcessLock(const ProcessLock&) = delete;
    ProcessLock& operator=(const ProcessLock&) = delete;

    void lock() noexcept HANARE_ACQUIRE();
    void unlock() noexcept HANARE_RELEASE();

private:
    std::atomic<pid_t> holder_{0};  // a process; 0: none
};

class HANARE_SCOPED_CAPABILITY ProcessLockGuard {
public:
    explicit ProcessLockGuard(ProcessLock& lock) noexcept HANARE_ACQUIRE(lock) : lock_(lock) {
        lock_.lock();
    }
    ~ProcessLockGuard() HANARE_RELEASE() { lock_.unlock(); }
    ProcessLockGuard(const ProcessLockGuard&) = delete;
    ProcessLockGuard& operator=(const ProcessLockGuard&) = delete;

private:
    ProcessLock& lock_;
};

}  // namespace hanare::sys
