// SPDX-License-Identifier: Apache-2.0
#include "sys/futex.hpp"

#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "sys/raw_thread.hpp"

namespace hanare::sys {

namespace {

// Not libc's, which may be intercepted: callers with all signals blocked can bear no fault.
void futex(const std::atomic<uint32_t>& word, int operation, uint32_t value,
           const timespec* timeout) noexcept {
    raw_call6(SYS_futex, reinterpret_cast<uint64_t>(&word), static_cast<uint64_t>(operation), value,
              reinterpret_cast<uint64_t>(timeout), 0, 0);
}

}  // namespace

void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected, int timeout_ms) noexcept {
    const timespec timeout = {timeout_ms / 1000, (timeout_ms % 1000) * 1'000'000L};
    futex(word, FUTEX_WAIT_PRIVATE, expected, timeout_ms < 0 ? nullptr : &timeout);
}

void futex_wake(const std::atomic<uint32_t>& word, int threads) noexcept {
    futex(word, FUTEX_WAKE_PRIVATE, static_cast<uint32_t>(threads), nullptr);
}

void shared_futex_wait(const std::atomic<uint32_t>& word, uint32_t expected,
                       int timeout_ms) noexcept {
    const timespec timeout = {timeout_ms / 1000, (timeout_ms % 1000) * 1'000'000L};
    futex(word, FUTEX_WAIT, expected, timeout_ms < 0 ? nullptr : &timeout);
}

void shared_futex_wake_all(const std::atomic<uint32_t>& word) noexcept {
    futex(word, FUTEX_WAKE, INT32_MAX, nullptr);
}

bool has_futex_timeout(int operation) noexcept {
    switch (operation & FUTEX_CMD_MASK) {
        case FUTEX_WAIT:
        case FUTEX_WAIT_BITSET:
        case FUTEX_LOCK_PI:
        case FUTEX_LOCK_PI2:
        case FUTEX_WAIT_REQUEUE_PI: return true;
        default: return false;
    }
}

bool has_second_futex(int operation) noexcept {
    switch (operation & FUTEX_CMD_MASK) {
        case FUTEX_REQUEUE:
        case FUTEX_CMP_REQUEUE:
        case FUTEX_CMP_REQUEUE_PI:
        case FUTEX_WAIT_REQUEUE_PI:
        case FUTEX_WAKE_OP: return true;
        default: return false;
    }
}

}  // namespace hanare::sys
