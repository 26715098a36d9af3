// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench intercept`: what `hanare run` costs a program that fits in the budget.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/options.hpp"

namespace hanare::cli {

struct InterceptFlags {
    bool quick = false;
    std::optional<std::string> json;
    std::shared_ptr<config::Overrides> overrides;
};

// Returns the exit status.
int run_bench_intercept(const InterceptFlags& flags);

}  // namespace hanare::cli
