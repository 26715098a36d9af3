// SPDX-License-Identifier: Apache-2.0
//
// Runs a series of `hanare bench pager`.  Used by the main thread.
#pragma once

#include <string>
#include <vector>

#include "bench/pager_report.hpp"
#include "cli/pager_series.hpp"

namespace hanare::cli {

struct PagerOutcome {
    bench::PagerSamples samples;       // by system, in the order of the series
    std::vector<std::string> remarks;  // for below the table
    std::string error;                 // why the bench as a whole failed; empty when it did not
};

// Ends early when a signal asks for it.  Nothing is left of it when it returns.
PagerOutcome run_pager_series(const PagerSeries& series);

}  // namespace hanare::cli
