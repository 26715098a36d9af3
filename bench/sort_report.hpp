// SPDX-License-Identifier: Apache-2.0
//
// What `hanare demo sort` plans and says at the end.  No state; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/record.hpp"
#include "bench/room.hpp"

namespace hanare::bench {

// How one system fared.
struct SortRun {
    std::string system;
    bool is_limited = false;  // in a cgroup of a quarter of the plain peak
    bool is_done = false;     // and its result verified
    double seconds = 0;       // until it was done, or ended otherwise; 0: it did not run
    uint64_t peak_resident_bytes = 0;
    std::string result;  // "identical", or how it ended
};

// A share of the plain peak, in whole pages.
uint64_t sort_limit_bytes(uint64_t plain_peak_bytes);
// What sort takes for a text, before it is known; texts of short lines take more than others.
uint64_t sort_memory_estimate(uint64_t text_bytes);
// What it takes at most for this text with two threads, all of it in memory (its option -S).
uint64_t sort_buffer_bytes(uint64_t text_bytes, uint64_t lines);
// For text, sorted text, and store or swap file.
uint64_t sort_disk_bytes(uint64_t text_bytes);

// LIMIT, with a size that would fit, when the machine has too little room in memory, on disk or for
// single files.
Result<void> check_sort_room(uint64_t text_bytes, const std::string& directory,
                             const MachineRoom& machine);

std::string sort_table(const std::vector<SortRun>& runs);

// One sentence on what the numbers mean, whichever way they came out.
std::string sort_sentence(const std::vector<SortRun>& runs, uint64_t text_bytes,
                          uint64_t limit_bytes);

std::vector<Record> sort_records(const std::vector<SortRun>& runs, const nlohmann::json& params);

}  // namespace hanare::bench
