// SPDX-License-Identifier: Apache-2.0
#include "space/turn_lock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

#include "space/task_table.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::space {

namespace {

constexpr uint32_t kYields = 64;
constexpr uint32_t kLookEveryMs = 10;

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

bool TurnLock::lock(uint32_t patience_ms) noexcept {
    const uint64_t before = set_mask(~uint64_t{0});
    uint32_t self = sys::raw_thread_id();
    uint32_t left_ms = patience_ms;
    uint32_t awaited = 0;
    for (uint32_t holder = 0, tried = 0;; ++tried) {
        // Of who has been killed as well.
        if (holder_.compare_exchange_strong(holder, self)) break;
        if (holder == 0) continue;  // somebody else has taken it over, and given it back
        const uint32_t thread = holder & ~kIsAwaited;
        if (!lives(thread)) continue;
        if (tried < kYields) {
            sys::raw_call3(SYS_sched_yield, 0, 0, 0);
        } else {
            if (std::exchange(awaited, thread) != thread) left_ms = patience_ms;
            if (left_ms == 0) {
                set_mask(before);
                return false;
            }
            // Others may sleep as well.
            self |= kIsAwaited;
            wait_for(holder, left_ms);
        }
        holder = 0;
    }
    mask_ = before;
    return true;
}

// It may be killed meanwhile, and wakes nobody then.
void TurnLock::wait_for(uint32_t holder, uint32_t& patience_ms) noexcept {
    if ((holder & kIsAwaited) == 0 &&
        !holder_.compare_exchange_strong(holder, holder | kIsAwaited)) {
        return;
    }
    const timespec timeout = {.tv_sec = 0, .tv_nsec = kLookEveryMs * 1'000'000L};
    const int64_t result =
        sys::raw_call6(SYS_futex, reinterpret_cast<uint64_t>(&holder_), FUTEX_WAIT_PRIVATE,
                       holder | kIsAwaited, reinterpret_cast<uint64_t>(&timeout), 0, 0);
    if (result != -ETIMEDOUT || patience_ms == kForever) return;
    patience_ms -= std::min(patience_ms, kLookEveryMs);
}

void TurnLock::unlock() noexcept {
    const uint64_t mask = mask_;
    if ((holder_.exchange(0) & kIsAwaited) != 0) {
        sys::raw_call3(SYS_futex, reinterpret_cast<uint64_t>(&holder_), FUTEX_WAKE_PRIVATE, 1);
    }
    set_mask(mask);
}

}  // namespace hanare::space
