// SPDX-License-Identifier: Apache-2.0
//
// Signals to the process that stands for tasks: the root of `hanare space run`, or a proxy.
#pragma once

#include <csignal>

#include "sys/foreground_program.hpp"

namespace hanare::space {

// What the terminal sends.  The limit of processor time is the process's own.
inline bool goes_to_all_by_itself(int number, int code) noexcept {
    if (number == SIGXCPU) return false;
    return sys::comes_to_program_too(number, code);
}

}  // namespace hanare::space
