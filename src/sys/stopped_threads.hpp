// SPDX-License-Identifier: Apache-2.0
//
// StoppedThreads: all other threads of the process stand still, wherever they are, and their
// registers can be changed.  A helper process that shares the memory traces them (ptrace(2)): they
// need no signal handler for that, may block all signals, and what they wait for in the kernel they
// go on to wait for.
//
// Where Yama is, it sets what PR_SET_PTRACER sets, which is nobody afterwards.
//
// They may hold any lock: meanwhile the calling thread allocates nothing and takes no lock that it
// has not taken before.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "sys/memory.hpp"

namespace hanare::sys {

struct StoppedThread {
    int thread_id;
    int signal_number;  // that was being delivered to it, or 0
    bool is_moved;      // its registers have been changed
    user_regs_struct registers;
};

class StoppedThreads {
public:
    StoppedThreads() = default;
    ~StoppedThreads() { go_on(); }
    StoppedThreads(const StoppedThreads&) = delete;
    StoppedThreads& operator=(const StoppedThreads&) = delete;

    // Once.  NOT_SUPPORTED where the system does not let a process trace (seccomp, Yama, a debugger
    // that does so already) or a sanitizer is there; LIMIT for more than kThreadsMax; TIMEOUT where
    // one has not stopped within a second: then none has been stopped.
    Result<void> stop();
    std::span<StoppedThread> threads() noexcept;
    // Also without success of stop().
    void go_on() noexcept;

    static constexpr size_t kThreadsMax = 1024;

private:
    struct Helper;

    Mapping memory_;  // of the helper: a Helper and its stack
};

}  // namespace hanare::sys
