// SPDX-License-Identifier: Apache-2.0
//
// Learning of the end of processes that are not our children.  Any thread.
#pragma once

#include <sys/types.h>

#include "sys/file.hpp"

namespace hanare::sys {

// A descriptor that becomes readable when the process ends, reaped or not.  Returns 0 or an errno
// value, ESRCH when there is no such process.
int open_process(pid_t process, FileDescriptor& file);

// Whether the process of a descriptor that open_process() gave has ended.
bool has_ended(const FileDescriptor& process);

// Whether the process has ended, reaped or not; false where the kernel does not tell.
// Async-signal-safe, no cancellation point.
bool has_ended(pid_t process) noexcept;

// Whether there is such a process; one that has ended and waits for its parent counts.
bool exists(pid_t process);

}  // namespace hanare::sys
