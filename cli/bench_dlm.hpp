// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench dlm`: the DLM paper's evaluation (2009, sections 5.1.3 and 5.2), run again next to
// the kernel's own means under the same limits.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/options.hpp"

namespace hanare::cli {

struct DlmFlags {
    // Where nothing is given, `quick` decides.
    std::optional<std::string> programs;
    std::optional<std::string> percents;
    std::optional<std::string> blocks;
    std::optional<std::string> stores;
    std::optional<std::string> systems;
    std::optional<std::string> rounds;
    std::optional<std::string> patience_s;
    bool quick = false;
    std::optional<std::string> json;
    std::optional<std::string> resume;
    std::optional<std::string> link;  // keeps the link of this store (cli/dlm_servers.hpp)
    std::shared_ptr<config::Overrides> overrides;
};

// Returns the exit status.
int run_bench_dlm(const DlmFlags& flags);

}  // namespace hanare::cli
