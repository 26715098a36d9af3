// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench stencil`: the systems, floors and goals, tables and records.  No state; any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/record.hpp"
#include "bench/stencil_run.hpp"

namespace hanare::bench {

inline constexpr const char* kStencilNaive = "naive";
inline constexpr const char* kStencilSpatial = "spatial";
inline constexpr const char* kStencilMmap = "mmap";
inline constexpr const char* kStencilDevito = "devito";
inline constexpr const char* kStencilMemory = "hanare_memory";
inline constexpr const char* kStencilComparable = "naive,spatial,mmap,devito";

struct StencilSystem {
    std::string name;
    std::string kind;    // StencilJob::kind, or devito
    uint64_t times = 0;  // the domain is so many times as large as its memory; 0: unlimited
    bool is_ping_pong = false;
    bool has_snapshots = false;

    bool is_hanare() const { return name.starts_with("hanare"); }
};

// Of `compared` and, always, Hanare in memory and at `times`.  What is compared at one limit alone
// is at the second of these, the paper's 8, or at the only one.
std::vector<StencilSystem> stencil_systems(const std::vector<std::string>& compared,
                                           const std::vector<uint64_t>& times);
uint64_t stencil_limit_times(const std::vector<uint64_t>& times);
std::string stencil_grid_name(uint64_t times);  // "hanare_8x"

struct StencilSample {
    int round = 0;
    std::string system;
    std::string failure{};  // "" for one that ended well
    SevenShape shape{};
    uint64_t steps = 0;
    StencilOutcome outcome{};

    double updates_per_s() const {
        return shape.updates() * static_cast<double>(steps) / outcome.seconds;
    }
};

// Why the result is not that of the plain sweeps; "" if it is.  `is_early`: those after as many
// steps as `found` has made.  `is_ordered`: operations have the same order.
std::string stencil_mismatch(const StencilSample& found, const StencilOutcome& expected,
                             bool is_early, bool is_ordered);

std::string stencil_table(const std::vector<StencilSample>& samples,
                          const std::vector<StencilSystem>& systems);
// Floors and goals, where there is something to compare.
std::string stencil_verdicts(const std::vector<StencilSample>& samples,
                             const std::vector<uint64_t>& times);
// Processors and bytes over time, of the first run of each system (the paper's Figs. 13, 14).
std::string stencil_series_table(const std::vector<StencilSample>& samples,
                                 const std::vector<StencilSystem>& systems);
std::vector<Record> stencil_records(const std::vector<StencilSample>& samples,
                                    const std::vector<StencilSystem>& systems,
                                    const std::vector<uint64_t>& times,
                                    const nlohmann::json& params);

// The paper's scheme: a slab's planes by steps of a pass (Figs. 8 to 10).
struct SweepPoint {
    std::string place;   // "memory" or "file"
    std::string method;  // "trapezoid", "two_level"
    uint32_t block = 0;
    uint32_t steps_per_pass = 0;
    double updates_per_s = 0;  // 0: it does not fit in the memory
    double redundant = 0;      // by what is needed
    double bytes_of_minimum = 0;
};
std::string sweep_tables(const std::vector<SweepPoint>& points);
std::vector<Record> sweep_records(const std::vector<SweepPoint>& points,
                                  const nlohmann::json& params);

}  // namespace hanare::bench
