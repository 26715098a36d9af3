// SPDX-License-Identifier: Apache-2.0
//
// Memory of Hanare's own where the program's malloc must not serve it: that may hold its locks
// around the system call in whose place Hanare runs, and what it gives may be far memory.  Blocks
// of powers of two, from mappings that are never given back.  Any thread; signals are blocked, or
// no handler allocates.
#pragma once

#include <cstddef>

namespace hanare::sys {

// nullptr when the system refuses.  The alignment is a power of two, 16 at least.
void* allocate_private(size_t bytes, size_t alignment = 16) noexcept;
void release_private(void* memory) noexcept;

}  // namespace hanare::sys
