// SPDX-License-Identifier: Apache-2.0
//
// Memory for alternate signal stacks, with a guard page below: a handler that needs more than there
// is ends in SIGSEGV instead of in somebody's data.  The caller owns what map_signal_stack returns.
#pragma once

#include <cstddef>

namespace hanare::sys {

// What the kernel's signal frame takes on this processor plus `handler_bytes`, in whole OS pages.
size_t signal_stack_bytes(size_t handler_bytes) noexcept;

// The lowest usable address, or null when the operating system refuses.
void* map_signal_stack(size_t bytes) noexcept;
void unmap_signal_stack(void* stack, size_t bytes) noexcept;

}  // namespace hanare::sys
