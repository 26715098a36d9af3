// SPDX-License-Identifier: Apache-2.0
//
// A program under `hanare run`, from its start to its end.  Single-threaded.
#pragma once

#include <memory>
#include <optional>

#include "base/result.hpp"
#include "cli/run.hpp"
#include "cli/run_program.hpp"
#include "cli/run_report.hpp"
#include "cli/run_watch.hpp"
#include "config/options.hpp"
#include "sys/output_file.hpp"

namespace hanare::cli {

// All that has been found to be in order.
struct RunPlan {
    RunFlags flags;
    config::Options options;
    ChosenProgram program;
    std::string library;  // empty when it is not to be preloaded
    std::optional<sys::OutputFile> stats;
    std::unique_ptr<RunBroker> broker;  // where the store needs one
};

// The status of waitpid(2); an error when the program did not start, with the `os_errno` of exec.
Result<int> run_session(RunPlan& plan, const RunArguments& arguments);

}  // namespace hanare::cli
