// SPDX-License-Identifier: Apache-2.0
//
// How much room a machine has for systems that are compared, and what a memory limit leaves to
// Hanare.  No state; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace hanare::bench {

struct MachineRoom {
    uint64_t free_disk_bytes = 0;
    uint64_t available_memory_bytes = 0;
    uint64_t file_bytes_max = UINT64_MAX;  // ulimit -f

    // Less what everything else on the machine may need.
    uint64_t usable_disk_bytes() const;
    uint64_t usable_memory_bytes() const;
};
// What is kept of disk and of memory for everything else.
inline constexpr uint64_t kRoomReserve = 256u << 20;

// For files in `directory`.
Result<MachineRoom> machine_room(const std::string& directory);

// The pool's budget below a limit for the whole process: less 5 % and 16 MiB for the program,
// stacks and page tables.
uint64_t hanare_budget_bytes(uint64_t limit_bytes);
// The least limit whose budget holds twice the least number of blocks, because the pool's own
// tables count, too.
uint64_t hanare_limit_min(uint64_t data_bytes, uint64_t block_bytes);

// value * numerator / denominator, in whole MiB.
uint64_t scaled_bytes(uint64_t value, uint64_t numerator, uint64_t denominator);

// value - reserve, or nothing.
constexpr uint64_t less_reserve(uint64_t value, uint64_t reserve) {
    return value > reserve ? value - reserve : 0;
}

}  // namespace hanare::bench
