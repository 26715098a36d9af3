// SPDX-License-Identifier: Apache-2.0
//
// A space: programs as tasks in the memory of this process, which is their root.  Each has a
// process of its own (number, descriptors, signal handlers, working directory) and a copy of its
// program, libraries and globals in a partition of its own, and can read and write that of the
// others. Source: Shimada's PVAS (2015), sections 3 and 4, whose kernel's part is done at user
// level.
//
// Tasks are not protected from each other's wild stores (the paper, section 6.3.2).  For the main
// thread; one space in a process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/result.hpp"
#include "space/begin_task.hpp"
#include "space/start_stack.hpp"
#include "space/task_table.hpp"

namespace hanare::space {

class Space {
public:
    static Result<Space> create();

    // Begins a program, with this mask of signals, and returns its task's index.  INVALID_ARGUMENT
    // and NOT_SUPPORTED where it is no program that can be a task, LIMIT when there are kTasksMax.
    Result<uint32_t> spawn(const StartOfProgram& start, uint64_t signal_mask,
                           const Inheritance* inherited = nullptr);

    // The task of a process that has ended and been waited for; its memory is given back.
    std::optional<uint32_t> reap(pid_t process);

    // What reap() has left, as long as some task was stopped in the middle of shared mappings.
    // False: it still is.
    bool settle();

    pid_t process_of(uint32_t index) const;

private:
    Space() = default;
    static Result<void> begin(Task& task, Beginning& beginning, const StartOfProgram& asked);
};

}  // namespace hanare::space
