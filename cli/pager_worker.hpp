// SPDX-License-Identifier: Apache-2.0
//
// The process in which `hanare bench pager` runs the cases of one system.  It says lines of JSON on
// standard output: {"ready":true} when its memory is there, and then, for every line on standard
// input, what came of it:
//
//   {"prepare":"seq_write"}  ->  {"prepared":true}
//   {"measure":"seq_write"}  ->  {"results":[{"system":"mmap","metrics":{"rate":1e9}}]}
//
// or, instead of any of them, {"error":"...","status":-4} and the end.  It also ends with its
// input.  The metrics are those of bench/pager_array.hpp, "read" and "written" (bytes moved, the
// flush at the end included), and Hanare's counters by their names.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/pager_array.hpp"

namespace hanare::cli {

struct PagerJob {
    std::string system;  // as the report calls it
    std::string kind;    // plain, mmap, mmap_sequential, mmap_random, swap, zram, hanare, device
    uint64_t bytes = 0;
    int threads = 1;
    double pass_s_max = 0;
    uint64_t accesses = 0;
    uint64_t seed = 0;
    std::string directory;     // for files
    std::string cgroup;        // to enter first; empty for none
    std::string block_device;  // whose transfers count; empty for none
    // Hanare's, and the raw device's budget and bytes in flight.
    uint64_t local_bytes = 0;
    uint64_t in_flight_bytes = 0;
    std::string store;
    uint64_t block_bytes = 0;
    std::string engine;
    uint32_t read_ahead_blocks = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PagerJob, system, kind, bytes, threads, pass_s_max, accesses,
                                   seed, directory, cgroup, block_device, local_bytes,
                                   in_flight_bytes, store, block_bytes, engine, read_ahead_blocks)

struct PagerResult {
    std::string system;
    bench::PagerMetrics metrics;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PagerResult, system, metrics)

// `job` is a PagerJob as JSON.  Returns the exit status.
int run_pager_worker(const std::string& job);

}  // namespace hanare::cli
