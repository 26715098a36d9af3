// SPDX-License-Identifier: Apache-2.0
//
// How long a program takes from its start to its end, as who waits for it sees it.  Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace hanare::sys {

// Runs the program at the path `arguments[0]` with our environment and descriptors.  Microseconds;
// INTERNAL if it ends otherwise than with status 0.
Result<double> time_program_us(const std::vector<std::string>& arguments);

}  // namespace hanare::sys
