// SPDX-License-Identifier: Apache-2.0
//
// Memory of other processes of this user (process_vm_readv, "cross memory attach"), without their
// taking part.  Async-signal-safe, no cancellation point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hanare::sys {

// 0: all of it was copied.  Else an errno value, and `destination` is unspecified: EPERM, not
// allowed here (the kernel's rules for debuggers, seccomp); ESRCH, no such process; EFAULT, not all
// of it can be read.
int read_other_memory(int process, uint64_t address, std::span<std::byte> destination) noexcept;

}  // namespace hanare::sys
