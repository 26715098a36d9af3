// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench fault`: what a fault costs, by engine, block size and kind.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/options.hpp"

namespace hanare::cli {

struct FaultFlags {
    bool quick = false;
    std::optional<std::string> json;
    std::shared_ptr<config::Overrides> overrides;
};

// Returns the exit status.
int run_bench_fault(const FaultFlags& flags);

}  // namespace hanare::cli
