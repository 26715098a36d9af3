// SPDX-License-Identifier: Apache-2.0
//
// What the processor can do.  Asked when it is needed and remembered: in a virtual machine each
// `cpuid` goes to the host and back, which is why nothing here, nor libgcc's constructor behind
// __builtin_cpu_supports, runs when a program starts.
// Any thread, async-signal-safe.
#pragma once

#include <cstddef>

namespace hanare::sys {

// With registers that the kernel saves.
bool has_avx2() noexcept;

// The instructions for CRC-32C.
bool has_sse42() noexcept;

// Of the second-level data cache of one core; 0 where the processor does not say.
size_t second_cache_bytes() noexcept;

}  // namespace hanare::sys
