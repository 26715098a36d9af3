// SPDX-License-Identifier: Apache-2.0
#include "sys/process_lock.hpp"

#include <sched.h>
#include <unistd.h>

namespace hanare::sys {

void ProcessLock::lock() noexcept {
    const pid_t self = ::getpid();
    for (;;) {
        pid_t holder = 0;
        if (holder_.compare_exchange_strong(holder, self, std::memory_order_acquire)) return;
        const bool is_left_by_parent = holder != self;
        if (is_left_by_parent &&
            holder_.compare_exchange_strong(holder, self, std::memory_order_acquire)) {
            return;
        }
        ::sched_yield();
    }
}

void ProcessLock::unlock() noexcept { holder_.store(0, std::memory_order_release); }

}  // namespace hanare::sys
