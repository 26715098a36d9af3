// SPDX-License-Identifier: Apache-2.0
//
// From the flags of `hanare bench pager` to what it runs.  Used by the main thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/pager_case.hpp"
#include "cli/pager_station.hpp"
#include "config/options.hpp"

namespace hanare::cli {

struct PagerFlags {
    // Where nothing is given, `quick` decides.
    std::optional<std::string> size;
    std::optional<std::string> compare;
    std::optional<std::string> cases;
    std::optional<std::string> threads;
    std::optional<std::string> rounds;
    bool quick = false;
    std::optional<std::string> json;
    std::string worker;
    std::shared_ptr<config::Overrides> overrides;
};

// All that was asked, checked.
struct PagerSeries {
    PagerSetting setting;              // without descriptor and guardian
    std::vector<PagerSystem> systems;  // Hanare first, the raw device last
    std::vector<bench::PagerCase> cases;
    std::vector<int> threads;
    uint32_t rounds = 0;

    // Cases that are the same for every number of threads run with the first one only.
    bool has(bench::PagerCase which, int thread_count) const {
        return which != bench::PagerCase::kMixed || thread_count == threads.front();
    }
};

// Errors name the flag, or what the machine lacks.
Result<PagerSeries> make_pager_series(const PagerFlags& flags);

}  // namespace hanare::cli
