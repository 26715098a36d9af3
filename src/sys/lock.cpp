// SPDX-License-Identifier: Apache-2.0
#include "sys/lock.hpp"

#include <ctime>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.hpp"
#include "sys/futex.hpp"

namespace hanare::sys {

namespace {
#if defined(HANARE_CHECK_LOCK_RANKS)
[[gnu::tls_model("initial-exec")]] thread_local uint32_t held_rank = 0;
#endif
}  // namespace

void RankedLock::lock_slow() noexcept {
    SpinWait wait;
    do {
        uint32_t free = kFree;
        if (word_.load(std::memory_order_relaxed) == kFree &&
            word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire)) {
            return;
        }
    } while (wait.spin());
    while (word_.exchange(kContended, std::memory_order_acquire) != kFree) {
        futex_wait(word_, kContended);
    }
}

void RankedLock::unlock() noexcept {
#if defined(HANARE_CHECK_LOCK_RANKS)
    held_rank = outer_rank_;
#endif
    if (word_.exchange(kFree, std::memory_order_release) == kContended) futex_wake(word_, 1);
}

#if defined(HANARE_CHECK_LOCK_RANKS)
void RankedLock::check_order() const noexcept { HANARE_ASSERT(held_rank < rank_); }

void RankedLock::note_acquired() noexcept {
    outer_rank_ = held_rank;
    held_rank = rank_;
}
#endif

void yield_for_us(uint32_t duration_us) noexcept {
    if (duration_us == 0) {
        sched_yield();
        return;
    }
    const timespec duration = {0, duration_us * 1000L};
    // Not clock_nanosleep(3), which is a cancellation point.
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &duration, nullptr);
}

}  // namespace hanare::sys
