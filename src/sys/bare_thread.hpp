// SPDX-License-Identifier: Apache-2.0
//
// BareThread: a thread that can be started where pthread_create cannot be called, which allocates:
// in the place of a system call, in a handler of faults.  Its stack, and libc's variables that each
// thread has of its own, are prepared before.
//
// libc does not know of it: it is not told when the program changes its user, allocates nothing by
// libc, uses no stdio, and libc takes a program without other threads for one that has one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "sys/memory.hpp"

namespace hanare::sys {

class BareThread {
public:
    BareThread() = default;
    ~BareThread() { join(); }
    BareThread(const BareThread&) = delete;
    BareThread& operator=(const BareThread&) = delete;

    // Allocates.  NOT_SUPPORTED where libc offers no way, or a sanitizer would have to know the
    // thread.
    Result<void> prepare();

    // Runs body(argument) in the thread, with the caller's signal mask, on the processors on which
    // prepare() was called.  0 or an errno value.  By the process that has prepared it, not while
    // it runs; async-signal-safe.
    int start(void (*body)(void* argument), void* argument) noexcept;
    // Waits until it has ended, if it runs.  Async-signal-safe.
    void join() noexcept;

private:
    static constexpr size_t kAffinityBytes = 128;  // 1024 processors

    [[noreturn]] static void begin(BareThread* self) noexcept;

    Mapping stack_;
    Mapping variables_;
    std::byte* thread_pointer_ = nullptr;
    void (*begin_in_libc_)() = nullptr;
    uint64_t affinity_[kAffinityBytes / sizeof(uint64_t)] = {};
    size_t affinity_bytes_ = 0;  // 0: not known
    void (*body_)(void* argument) = nullptr;
    void* argument_ = nullptr;
    std::atomic<uint32_t> runs_{0};  // the kernel clears it and wakes who waits, at the end
};

}  // namespace hanare::sys
