// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench pager`: an array several times larger than local memory, on Hanare and on what the
// kernel offers, case by case.
#pragma once

#include "cli/pager_series.hpp"

namespace hanare::cli {

// Returns the exit status; does not return when a signal ended the run.
int run_bench_pager(const PagerFlags& flags);

}  // namespace hanare::cli
