// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench dlm-pagesize`: a write with one swap by block size (DLM 2009, Fig. 13).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/options.hpp"

namespace hanare::cli {

struct DlmPagesizeFlags {
    std::optional<std::string> rounds;
    bool quick = false;
    std::optional<std::string> json;
    std::shared_ptr<config::Overrides> overrides;
};

// Returns the exit status.
int run_bench_dlm_pagesize(const DlmPagesizeFlags& flags);

}  // namespace hanare::cli
