// SPDX-License-Identifier: Apache-2.0
//
// `hanare run`: an unmodified program with its memory in a pool.  What happens, in order:
// run_arguments.cpp parts the command line, run.cpp checks all that can be wrong, run_program.cpp
// finds the program and looks at it, run_environment.cpp says how the library gets into it,
// run_session.cpp starts it and stays with it, run_watch.cpp keeps account, run_report.cpp tells.
// Single-threaded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "config/options.hpp"

namespace hanare::cli {

// What main() knows and the program is to have.
struct RunArguments {
    std::vector<std::string> program;       // its name and arguments
    bool ignores_file_size_signal = false;  // SIGXFSZ, before we ignored it
};

struct RunFlags {
    std::optional<std::string> stats;
    bool progress = false;
    bool verbose = false;
};

// `hanare run PROG`, as add_run()'s subcommand does it.
int run_without_options(const RunArguments& arguments);

// `arguments` is filled before the command line is parsed and outlives the app.
void add_run(CLI::App& app, const RunArguments& arguments);

// How many of `argv` are for us.  From the first argument of `hanare run` that is neither an option
// nor an option's value, or from what follows "--", they are moved to `arguments`.
int part_arguments(CLI::App& app, int argc, char** argv, RunArguments& arguments);

}  // namespace hanare::cli
