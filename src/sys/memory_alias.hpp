// SPDX-License-Identifier: Apache-2.0
//
// The same pages at two addresses, for shared memory that somebody else has mapped.
#pragma once

#include <cstddef>

namespace hanare::sys {

// Replaces what is mapped at `target`, in one step for running threads, by the pages that are at
// `memory`, which stay there, too.  Both are multiples of the OS page.  Returns 0 or an errno
// value; EINVAL: the memory is not shared.
int alias_shared_memory(void* target, const void* memory, size_t bytes) noexcept;

}  // namespace hanare::sys
