// SPDX-License-Identifier: Apache-2.0
//
// The process in which `hanare demo` runs matv on one system, and what it tells its parent: lines
// of JSON on standard output, {"phase","done","total"} while it works, then {"y":[bits...]} and
// {"result":{...}}, or {"error":"..."} instead.
// The worker is single-threaded but for the pager's own threads.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace hanare::cli {

struct DemoJob {
    std::string system;     // plain, mmap, mmap-seq, swap or hanare
    uint64_t n = 0;         // order of the matrix
    std::string directory;  // for files
    std::string cgroup;     // to enter first; empty for none
    std::string device;     // whose transfers count; empty for none
    // Hanare's:
    uint64_t local_bytes = 0;
    std::string store;
    uint64_t block_bytes = 0;
    std::string engine;
    uint32_t read_ahead_blocks = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DemoJob, system, n, directory, cgroup, device, local_bytes,
                                   store, block_bytes, engine, read_ahead_blocks)

struct DemoResult {
    double write_a_s = 0;
    double write_x_s = 0;
    double multiply_s = 0;
    bool moved_known = false;
    uint64_t read_bytes = 0;
    uint64_t written_bytes = 0;
    uint64_t faults = 0;
    uint64_t major_faults = 0;
    uint64_t peak_resident_bytes = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DemoResult, write_a_s, write_x_s, multiply_s, moved_known,
                                   read_bytes, written_bytes, faults, major_faults,
                                   peak_resident_bytes)

// `job` is a DemoJob as JSON.  Returns the exit status.
int run_demo_worker(const std::string& job);

}  // namespace hanare::cli
