// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench pager`: an array several times larger than local memory, on Hanare and on what the
// kernel offers, case by case.
#pragma once

#include <memory>
#include <optional>
#include <string>

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

// Returns the exit status; does not return when a signal ended the run.
int run_bench_pager(const PagerFlags& flags);

}  // namespace hanare::cli
