// SPDX-License-Identifier: Apache-2.0
//
// One run of one system of `hanare bench stencil`, in a process of its own: memory, initial values,
// what warms it up, what is timed, and the result.  By one thread, which starts others.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/process_series.hpp"
#include "bench/stencil_seven.hpp"

namespace hanare::bench {

struct StencilJob {
    std::string kind;  // plain, blocks, mapped, memory, file, swap
    int64_t z = 0;
    int64_t y = 0;
    int64_t x = 0;
    uint64_t steps = 0;
    uint64_t early_steps = 0;  // plain: the result after these is told, too; 0: none
    uint32_t threads = 1;
    uint64_t memory_bytes = 0;  // Hanare's budget
    std::string directory{};
    bool is_ping_pong = false;
    uint64_t snapshot_every = 0;
    std::string method{};  // trapezoid, two_level; else streaming
    uint32_t steps_per_pass = 0;
    uint32_t block = 0;  // planes of a slab
    uint64_t series_every_ms = 100;

    SevenShape shape() const { return {z, y, x}; }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StencilJob, kind, z, y, x, steps, early_steps, threads,
                                   memory_bytes, directory, is_ping_pong, snapshot_every, method,
                                   steps_per_pass, block, series_every_ms)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SevenResult, digest, sums, cells)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProcessMoment, seconds, user_s, system_s, read_bytes,
                                   written_bytes)

struct StencilOutcome {
    double seconds = 0;
    uint64_t read_bytes = 0;  // by the process, while it was timed
    uint64_t written_bytes = 0;
    uint64_t minimal_bytes = 0;  // 0: none are needed
    uint64_t snapshot_bytes = 0;
    double write_bytes_per_s = 0;  // that Hanare has measured of the file
    double io_wait_s = 0;
    uint64_t redundant_updates = 0;
    std::string details{};
    SevenResult result{};
    SevenResult early{};  // without sums and cells
    std::vector<ProcessMoment> series{};
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StencilOutcome, seconds, read_bytes, written_bytes,
                                   minimal_bytes, snapshot_bytes, write_bytes_per_s, io_wait_s,
                                   redundant_updates, details, result, early, series)

Result<StencilOutcome> run_stencil(const StencilJob& job);

}  // namespace hanare::bench
