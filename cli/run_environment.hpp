// SPDX-License-Identifier: Apache-2.0
//
// What tells a program, and all that it starts, to keep its memory in a pool: LD_PRELOAD with the
// library, every option as HANARE_* variable with the value that was resolved here, HANARE_RUN_PAGE
// and HANARE_RUN_BROKER.  No other source of options is left to them, so that all have the same.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/options.hpp"

namespace hanare::cli {

// libhanare-run.so: $HANARE_RUN_LIBRARY, else where this program was built or installed.
Result<std::string> find_run_library();

struct RunEnvironment {
    std::string library;
    std::string page;    // path of the shared page
    std::string broker;  // who makes connections to memory servers; empty: nobody
    bool verbose = false;
};

// NAME=VALUE of all; the options' store has an absolute directory.
std::vector<std::string> program_environment(const config::Options& options,
                                             const RunEnvironment& wanted);

// The environment as it is.
std::vector<std::string> plain_environment();

}  // namespace hanare::cli
