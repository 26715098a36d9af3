// SPDX-License-Identifier: Apache-2.0
//
// What this process has cost so far, and where it runs.  Any thread.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace hanare::sys {

struct ProcessUsage {
    uint64_t minor_faults = 0;
    uint64_t major_faults = 0;         // those that waited for a device
    uint64_t peak_resident_bytes = 0;  // VmHWM: since exec
};

Result<ProcessUsage> process_usage();

// Pages that the kernel has read for it, mostly of files that it maps.  Async-signal-safe.
uint64_t major_faults() noexcept;

struct OwnMemory {
    uint64_t address_bytes = 0;
    uint64_t anonymous_bytes = 0;  // present, in no file; what it shares with forked children, too
    uint64_t page_table_bytes = 0;
};

// Zeros where the kernel does not tell.  Async-signal-safe.
OwnMemory own_memory() noexcept;

// Somebody follows the process with ptrace(2).  False where /proc does not tell.
// Async-signal-safe.
bool is_traced() noexcept;

// Where the heap begins that brk(2) moves the end of; 0 where the kernel does not tell.
// Async-signal-safe.
uintptr_t heap_begin() noexcept;

// What the limit of addresses (ulimit -v) leaves; UINT64_MAX where there is none.
// Async-signal-safe.
uint64_t free_address_bytes() noexcept;

// On which the calling thread may run; 1 where the kernel does not tell.
uint32_t allowed_cpus() noexcept;

// Keeps the calling thread on the CPU it runs on; false where that is refused.
bool stay_on_this_cpu() noexcept;
// On the first, or the last, of those on which it may run.
bool stay_on_first_cpu() noexcept;
bool stay_on_last_cpu() noexcept;

}  // namespace hanare::sys
