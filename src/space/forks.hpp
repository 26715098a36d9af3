// SPDX-License-Identifier: Apache-2.0
//
// fork in a task: the child has a copy of the task's memory, and nothing of the other tasks', whose
// page tables would be copied for nothing.  In tasks: no libc, no vector registers.
#pragma once

#include <cstdint>

#include "hook/rewrite/system_call.hpp"
#include "space/task_table.hpp"

namespace hanare::space {

// What the call (SYS_fork, SYS_clone, SYS_clone3) makes: a child with a memory of its own that goes
// on where the caller is, or on another stack, which the kernel has to make; or none.
enum class Fork { kNone, kHere, kElsewhere };
Fork fork_of(const hook::SystemCall& call) noexcept;

// From now on the other tasks' forks do not keep the task's memory from its children: it makes them
// by other means, or says itself which memory they get.
void leave_alone(Task& task) noexcept;

// Makes it, and returns in both, with the call's result.
int64_t fork_task(Task& task, const hook::SystemCall& call) noexcept;

}  // namespace hanare::space
