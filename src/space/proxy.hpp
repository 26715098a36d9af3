// SPDX-License-Identifier: Apache-2.0
//
// A process that stands for a task of a space: launchers start, signal and wait for it, as they
// would for the program itself, which the space's root begins with all that the proxy has.
#pragma once

#include <string>

#include "base/result.hpp"
#include "space/start_stack.hpp"

namespace hanare::space {

// The space that tasks of one job share: HANARE_SPACE, or what MPI's launchers say of the job, or
// the process that started this one.
std::string space_of_environment();

// Runs the program as a task of the named space, whose root is started as `root_program` where
// there is none yet, and ends as the task ends.  Returns only where no task has begun.
Error run_by_proxy(const StartOfProgram& start, const std::string& space,
                   const std::string& root_program);

}  // namespace hanare::space
