// SPDX-License-Identifier: Apache-2.0
//
// The sizes of `hanare bench pager`: an array and a limit that the machine has room for with every
// system alive at once, derived from what was asked.  No state; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/room.hpp"

namespace hanare::bench {

struct PagerRequest {
    uint64_t data_bytes = 0;   // 0: four times the limit
    uint64_t limit_bytes = 0;  // 0: a quarter of the data
    uint64_t default_limit_bytes = 0;
    std::string limit_name = "--local";  // the option and where it was given, for messages
    uint64_t block_bytes = 0;
    uint32_t limited_systems = 0;  // alive at once, the raw device's buffers included
    uint32_t files = 0;            // as large as the data
    bool has_swap_file = false;
    bool has_plain = false;
    bool has_zram = false;
};

struct PagerPlan {
    uint64_t data_bytes = 0;
    uint64_t limit_bytes = 0;  // of every limited system
    uint64_t hanare_local_bytes = 0;
    // Of swap file and zram: twice the data, because a kernel whose swap is half full gives up the
    // copies of pages that it reads, and has to write them again.
    uint64_t swap_bytes = 0;
    std::vector<std::string> notes;       // what was made smaller, and why
    std::optional<std::string> no_plain;  // why there is no plain memory
};

// INVALID_ARGUMENT names flag, value and range when a size cannot work, LIMIT what the machine
// lacks.  Sizes that are merely too large for it are made smaller.
Result<PagerPlan> plan_pager(const PagerRequest& request, const MachineRoom& room);

}  // namespace hanare::bench
