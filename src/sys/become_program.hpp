// SPDX-License-Identifier: Apache-2.0
//
// This process becomes another program, as exec does.  For a process without other threads.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace hanare::sys {

// The program at the path `arguments[0]` gets our environment and descriptors, and from the kernel
// the signal when our parent (the thread that started us) ends before it; 0: none.  Returns only
// what has failed.
Error become_program(const std::vector<std::string>& arguments, int signal_at_parents_end);

}  // namespace hanare::sys
