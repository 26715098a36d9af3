// SPDX-License-Identifier: Apache-2.0
//
// The program of `hanare run`: where it is, whether the library can get into it, and why it does
// not start.  Exit statuses are those of env(1).
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/program_file.hpp"

namespace hanare::cli {

inline constexpr int kExitCannotExecute = 126;
inline constexpr int kExitNotFound = 127;

struct ChosenProgram {
    sys::ProgramFile file;
    std::string note;     // why it will run in plain memory; empty when it will not
    bool preload = true;  // whether LD_PRELOAD does any good, to it or to what it starts
};

Result<ChosenProgram> choose_program(const std::string& name);

// Prints one line and returns the exit status.
int report_not_found(const Error& error);
int report_not_started(const ChosenProgram& program, const Error& error);

}  // namespace hanare::cli
