// SPDX-License-Identifier: Apache-2.0
//
// The root of a space that runs one program several times (`hanare space run`): begins the tasks,
// passes signals on, waits for all.  For the main thread of a process without other threads.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "space/start_stack.hpp"

namespace hanare::space {

// Task K of N finds HANARE_SPACE_TASK=K and HANARE_SPACE_TASKS=N in its environment.  When one
// cannot begin, those before it are killed.  Returns the status of waitpid(2) of the first that
// failed, or 0 when none has.
Result<int> run_tasks(const StartOfProgram& start, uint32_t count);

}  // namespace hanare::space
