// SPDX-License-Identifier: Apache-2.0
//
// Runs a program that is measured (sys/measured_program.hpp) until it and all that it has started
// have ended, its time is up, or a signal asks us to stop.  Used by the main thread.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "cli/worker_lines.hpp"
#include "sys/measured_program.hpp"

namespace hanare::cli {

struct ProgramRun {
    std::string error;  // of ours: it has not run
    WorkerLines::Next ending = WorkerLines::Next::kClosed;
    sys::MeasuredProgram::End end{};
    double seconds = 0;
    std::vector<std::string> said{};  // on standard error, the last lines

    bool is_good() const {
        return error.empty() && ending == WorkerLines::Next::kClosed && end.status == 0;
    }
    // What is wrong with it, if something is.
    std::string last_said() const;
};

// `look` is called a few times a second.
ProgramRun run_program(const sys::MeasuredProgram::Launch& launch, std::chrono::seconds patience,
                       int interrupt_fd, const std::function<void()>& look = {});

// What the program has written to the file that was its standard output, 64 KiB at most.
std::string output_text(int file);

}  // namespace hanare::cli
