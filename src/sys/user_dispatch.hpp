// SPDX-License-Identifier: Apache-2.0
//
// Syscall user dispatch (prctl(2)): the kernel sends SIGSYS to the thread in the place of each of
// its system calls.  x86-64, Linux 5.11.  Async-signal-safe.
#pragma once

#include <csignal>
#include <cstddef>

namespace hanare::sys {

inline constexpr int kUserDispatchCode = 2;  // si_code of such a signal

// From now on, but for calls from [code, code + bytes).  Ends with exec; threads and children begin
// without.  An errno value where the kernel refuses, 0 otherwise.
int begin_user_dispatch(const void* code, size_t bytes) noexcept;
int end_user_dispatch() noexcept;

// Of such a signal: whether the call's number is one of the x86-64 table.
bool is_of_native_table(const siginfo_t& info) noexcept;

}  // namespace hanare::sys
