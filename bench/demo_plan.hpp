// SPDX-License-Identifier: Apache-2.0
//
// What `hanare demo` runs: sizes that the machine has room for, derived from what was asked.
// No state; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/room.hpp"

namespace hanare::bench {

struct DemoRequest {
    uint64_t matrix_bytes = 0;  // wanted
    uint64_t local_bytes = 0;   // memory that each limited system gets
    uint64_t block_bytes = 0;
    bool local_is_default = true;  // then it follows a smaller matrix, to keep its share
    std::string local_name;        // the option and where it was given, for messages
    std::string directory;         // where the files will be, for messages
};

struct DemoPlan {
    uint64_t n = 0;  // order of the matrix
    uint64_t matrix_bytes = 0;
    uint64_t limit_bytes = 0;             // of every limited system's cgroup
    uint64_t hanare_local_bytes = 0;      // the limit less 5 % and 16 MiB
    uint64_t swap_bytes = 0;              // size of the swap file
    uint64_t store_bytes = 0;             // what a store must hold
    std::vector<std::string> notes;       // what was made smaller, and why
    std::optional<std::string> no_plain;  // why the matrix does not fit into plain memory
};

// INVALID_ARGUMENT names option, value and range when a size cannot work, LIMIT what the machine
// lacks.  Sizes that are merely too large for it are made smaller.
Result<DemoPlan> plan_demo(const DemoRequest& request, const MachineRoom& machine);

}  // namespace hanare::bench
