// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench fabric`: operations on another process's memory, next to sockets used by hand, UCX
// and MPI.
#pragma once

#include <optional>
#include <string>

namespace hanare::cli {

struct FabricFlags {
    bool quick = false;
    std::optional<std::string> json;
    std::optional<std::string> compare;
    std::optional<std::string> cases;
    std::string network = "loopback";
    bool target = false;                  // is the process whose memory it is
    bool group_task = false;              // is one task of a job
    std::optional<std::string> compared;  // becomes this system
    std::optional<std::string> beside;    // its target in the network of this process
};

// "get_64, put_64, ..."
std::string fabric_case_names();

// Returns the exit status.
int run_bench_fabric(const FabricFlags& flags);

}  // namespace hanare::cli
