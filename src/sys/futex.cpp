// SPDX-License-Identifier: Apache-2.0
#include "sys/futex.hpp"

#include <cerrno>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hanare::sys {

void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected, int timeout_ms) noexcept {
    const int saved_errno = errno;
    timespec timeout = {timeout_ms / 1000, (timeout_ms % 1000) * 1'000'000L};
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, timeout_ms < 0 ? nullptr : &timeout);
    errno = saved_errno;
}

void futex_wake(const std::atomic<uint32_t>& word, int threads) noexcept {
    const int saved_errno = errno;
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, threads);
    errno = saved_errno;
}

}  // namespace hanare::sys
