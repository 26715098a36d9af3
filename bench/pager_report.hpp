// SPDX-License-Identifier: Apache-2.0
//
// What `hanare bench pager` says at the end: a table with every case, number of threads and system,
// the same as records, and how the ratios stand to the project's goals.  Ratios are taken inside
// each round, because a machine's speed drifts from round to round, and their median is reported.
// No state; any thread.
#pragma once

#include <string>
#include <vector>

#include "bench/pager_array.hpp"
#include "bench/record.hpp"

namespace hanare::bench {

inline constexpr const char* kHanareSystem = "hanare";

// What one system gave in one case of one round.
struct PagerSample {
    int round = 0;
    int threads = 0;
    PagerCase which = PagerCase::kSeqWrite;
    std::string system;
    PagerMetrics metrics;
};
using PagerSamples = std::vector<PagerSample>;

// A row per case, number of threads and system, in the order of their first samples.
std::string pager_table(const PagerSamples& samples);

// A line per goal and number of threads.  "device allows": the same ratio for a pager that kept the
// device as busy as the raw transfers of that round did, with the part `local_ratio` of the data
// in memory.
std::string pager_goals(const PagerSamples& samples, double local_ratio);

// One record per metric of a row; params get "threads", "values" (the metric of each round), and
// "engine" and "flush" where they are others.
std::vector<Record> pager_records(const PagerSamples& samples, const nlohmann::json& params);

}  // namespace hanare::bench
