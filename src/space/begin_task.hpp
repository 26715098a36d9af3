// SPDX-License-Identifier: Apache-2.0
//
// The process of a task: it shares the memory of this one and has all else for itself (clone with
// CLONE_VM alone), and begins with a program that was mapped before.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <span>

#include "base/result.hpp"

namespace hanare::space {

// What a task has from a proxy instead of from the root.
struct Inheritance {
    // Open in the root, by which numbers they are known in the task, and room for as many.
    std::span<const int> descriptors;
    std::span<const int> numbers;
    std::span<int> room;
    int directory = -1;  // the working directory
    uint32_t umask = 0;
    int32_t group = 0;             // of processes
    uint64_t ignored_signals = 0;  // bit N-1: signal N
    std::span<const rlimit> limits;
    std::span<const uint8_t> processors;
};

struct Task;

struct Beginning {
    Task* task = nullptr;
    uint64_t entry = 0;          // of the loader or the program
    uint64_t stack_pointer = 0;  // what the program finds on its stack is there
    uint64_t signal_mask = 0;
    char name[16] = {};                      // of the thread
    const Inheritance* inherited = nullptr;  // null: all is the root's
};

// Returns the process once it has all that it needs of this, `inherited` and the descriptors there
// included.  The caller is told its end by SIGCHLD; it is killed when the calling thread ends.
Result<pid_t> begin_task(const Beginning& beginning, std::span<std::byte> stack);

}  // namespace hanare::space
