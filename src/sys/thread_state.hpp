// SPDX-License-Identifier: Apache-2.0
//
// What other threads of this process are doing, and signals to them.  Async-signal-safe, no
// cancellation points.
#pragma once

#include <cstdint>

namespace hanare::sys {

uint32_t current_thread_id() noexcept;

// Whether the thread is inside a system call, as opposed to a fault of its own code.  Only for a
// thread that sleeps; false when the kernel does not tell.
bool is_in_system_call(uint32_t thread_id) noexcept;

// Sends a signal to a thread of this process.
void signal_thread(uint32_t thread_id, int signal_number) noexcept;

}  // namespace hanare::sys
