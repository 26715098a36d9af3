// SPDX-License-Identifier: Apache-2.0
//
// write(2) itself: unlike the libc function no cancellation point, so a fault handler may call it.
#pragma once

#include <cstddef>

namespace hanare::sys {

// Returns what write(2) returns, with errno set on -1.  Async-signal-safe.
long raw_write(int descriptor, const void* data, size_t bytes) noexcept;

}  // namespace hanare::sys
