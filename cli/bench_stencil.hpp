// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench stencil`: 7 points on a domain larger than its memory, next to codes in memory and
// to a mapped file; with --sweep the paper's scheme by block, steps of a pass and levels.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/options.hpp"

namespace hanare::cli {

struct StencilFlags {
    // Where nothing is given, `quick` and `sweep` decide.
    std::optional<std::string> compare;
    std::optional<std::string> size;
    std::optional<std::string> times;
    std::optional<std::string> steps;
    std::optional<std::string> rounds;
    std::optional<std::string> threads;
    std::optional<std::string> patience_s;
    std::optional<std::string> python;
    bool quick = false;
    bool sweep = false;
    std::optional<std::string> json;
    std::optional<std::string> worker;
    std::shared_ptr<config::Overrides> overrides;
};

// Returns the exit status.
int run_bench_stencil(const StencilFlags& flags);

}  // namespace hanare::cli
