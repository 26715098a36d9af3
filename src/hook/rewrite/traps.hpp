// SPDX-License-Identifier: Apache-2.0
//
// System calls before any code is rewritten: the kernel stops each with SIGSYS (syscall user
// dispatch), and the handler makes it.  Rewriting costs as much as some hundreds of these, and many
// programs make fewer.  Only while the program has one thread and no signal handlers, so that at
// most one of its system calls has begun when code is rewritten.
#pragma once

namespace hanare::hook {

// From now on, unless it returns false: where the kernel does not offer it, or somebody else would
// notice (a debugger, a signal handler).  Once.
bool begin_traps() noexcept;

// Nothing if they are not on.
void end_traps() noexcept;

}  // namespace hanare::hook
