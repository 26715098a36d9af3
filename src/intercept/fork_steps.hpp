// SPDX-License-Identifier: Apache-2.0
//
// What comes before a fork and after it, in parent and child (forks.cpp).  All signals are blocked
// in between.  Functions of hanare_hook_with_vector_registers, with ForkSteps.
#pragma once

#include <csignal>
#include <cstdint>

namespace hanare::intercept {

struct ForkSteps {
    bool has_stack = false;  // of the child's own
    int error = 0;           // prepare_fork: why there can be no child
    int64_t child = 0;
    bool has_row = false;
    uint32_t row = 0;  // of the slot table
    sigset_t mask;
};

void prepare_fork(void* steps);
void finish_fork(void* steps);
void finish_fork_in_child(void* steps);

}  // namespace hanare::intercept
