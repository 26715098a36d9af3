// SPDX-License-Identifier: Apache-2.0
//
// The calling thread's number as of gettid(2), for who needs it more often than a system call is
// cheap: the kernel is asked once in each thread, and again in a child of fork, however that was
// made.  Between vfork and exec it is the parent's.  Async-signal-safe.
#pragma once

#include <cstdint>

namespace hanare::sys {

uint32_t own_thread_id() noexcept;

// What the kernel has said was for another thread, which had the same variables (BareThread).
void forget_own_thread_id() noexcept;

}  // namespace hanare::sys
