// SPDX-License-Identifier: Apache-2.0
#include "space/turn_lock.hpp"

#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>

#include "space/task_table.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::space {

namespace {

uint64_t set_mask(uint64_t mask) noexcept {
    uint64_t before = 0;
    sys::raw_call6(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<uint64_t>(&mask),
                   reinterpret_cast<uint64_t>(&before), sizeof mask, 0, 0);
    return before;
}

// In a child of fork, what holds the lock may be a thread of its parent.
bool lives(uint32_t thread) noexcept {
    if (!TaskTable::is_here()) return sys::raw_thread_lives(thread);
    if (sys::raw_call3(SYS_kill, thread, 0, 0) == -ESRCH) return false;
    // The root waits for nobody who waits for it to be buried.
    siginfo_t ended = {};
    const int64_t asked =
        sys::raw_call6(SYS_waitid, P_PID, thread, reinterpret_cast<uint64_t>(&ended),
                       WEXITED | WNOHANG | WNOWAIT, 0, 0);
    return asked != 0 || ended.si_pid == 0;
}

}  // namespace

void TurnLock::lock() noexcept {
    const uint64_t before = set_mask(~uint64_t{0});
    const uint32_t self = sys::raw_thread_id();
    for (uint32_t holder = 0; !holder_.compare_exchange_weak(holder, self);) {
        if (holder == 0) continue;
        if (lives(holder)) {
            sys::raw_call3(SYS_sched_yield, 0, 0, 0);
            holder = 0;
        }
    }
    mask_ = before;
}

void TurnLock::unlock() noexcept {
    const uint64_t mask = mask_;
    holder_.store(0);
    set_mask(mask);
}

}  // namespace hanare::space
