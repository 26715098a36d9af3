// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench space`: MPI between ranks that are tasks of one space, next to the same ranks as
// processes.
#pragma once

#include <optional>
#include <string>

namespace hanare::cli {

struct SpaceBenchFlags {
    bool quick = false;
    std::optional<std::string> mpis;
    std::optional<std::string> ranks;
    std::optional<std::string> cases;
    std::optional<std::string> rounds;
    std::optional<std::string> json;
    std::optional<std::string> job;  // what the bench runs its jobs as: MPI:MODE:RANKS:CASES
};

// Returns the exit status.
int run_bench_space(const SpaceBenchFlags& flags);

}  // namespace hanare::cli
