// SPDX-License-Identifier: Apache-2.0
//
// Rewrites those system calls of a task's code that the space answers (calls.hpp).  Others stay as
// they are.  No libc that needs a thread's variables: in a task these are of another libc.
#pragma once

#include <span>

#include "space/partition.hpp"

namespace hanare::space {

// Code that has just been mapped at `place` from the file, from `offset` of it on, and has not run
// yet.  Returns how many sites with a known number could not be rewritten.
uint32_t rewrite_code(Partition& partition, Range place, int file, uint64_t offset) noexcept;

}  // namespace hanare::space
