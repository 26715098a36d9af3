// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench dlm-test1`: Test 1 of the DLM paper (2009, section 5.1.1), its Figs. 9 to 12.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/options.hpp"

namespace hanare::cli {

struct DlmTest1Flags {
    // Where nothing is given, `quick` decides.
    std::optional<std::string> size;
    std::optional<std::string> blocks;
    std::optional<std::string> percents;
    std::optional<std::string> rounds;
    bool quick = false;
    std::optional<std::string> json;
    std::shared_ptr<config::Overrides> overrides;
};

// Returns the exit status.
int run_bench_dlm_test1(const DlmTest1Flags& flags);

}  // namespace hanare::cli
