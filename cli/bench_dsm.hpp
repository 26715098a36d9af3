// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench dsm`: the programs of bench/dsm, as tasks that share memory, next to the same under
// MPI and PVM.
#pragma once

#include <optional>
#include <string>

namespace hanare::cli {

struct DsmBenchFlags {
    // Where nothing is given, `quick` decides.
    std::optional<std::string> programs;
    std::optional<std::string> compare;
    std::optional<std::string> processes;
    std::optional<std::string> rounds;
    std::optional<std::string> patience_s;
    std::optional<std::string> folder;
    std::optional<std::string> network;
    bool is_far_end = false;
    bool quick = false;
    std::optional<std::string> json;
};

// Returns the exit status.
int run_bench_dsm(const DsmBenchFlags& flags);

}  // namespace hanare::cli
