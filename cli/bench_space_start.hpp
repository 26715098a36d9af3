// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

namespace hanare::cli {

// Of a program that ends at once, from the call that starts it until it was waited for: the median
// of many, as a task of a space or as a process of its own (clone and exec, as posix_spawn(3)
// does), in microseconds.
Result<double> time_of_starts_us(bool is_task);

}  // namespace hanare::cli
