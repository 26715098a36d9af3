// SPDX-License-Identifier: Apache-2.0
//
// Which namespace of processes this one is in: numbers of processes and threads mean the same to
// two of them only where that is the same.  Any thread.
#pragma once

#include <cstdint>

namespace hanare::sys {

// The kernel's number for it, the same for all that are in it; 0: not known, for want of /proc.
// Async-signal-safe.
uint64_t process_namespace() noexcept;

}  // namespace hanare::sys
