// SPDX-License-Identifier: Apache-2.0
//
// `hanare run`: an unmodified program with its memory in a pool.  What happens, in order:
// front.cpp, or run_subcommand.cpp, parts the command line, run.cpp checks all that can be wrong,
// run_program.cpp finds the program and looks at it, run_environment.cpp says how the library gets
// into it, run_session.cpp starts it and stays with it, run_watch.cpp keeps account, run_report.cpp
// tells.
// Single-threaded.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// Between options and the program, where that is needed.
inline constexpr std::string_view kRunArgumentsEnd = "--";

// Returns, with an exit status, only when the program never began.
int run_program(const RunFlags& flags, const config::Overrides& overrides,
                const RunArguments& arguments);

}  // namespace hanare::cli
