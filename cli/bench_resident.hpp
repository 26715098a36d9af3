// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench resident`: what far memory costs when all of it is local.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/options.hpp"

namespace hanare::cli {

struct ResidentFlags {
    bool quick = false;
    std::optional<std::string> json;
    std::shared_ptr<config::Overrides> overrides;
};

// Returns the exit status.
int run_bench_resident(const ResidentFlags& flags);

}  // namespace hanare::cli
