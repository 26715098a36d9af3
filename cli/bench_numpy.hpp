// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench numpy`: NumPy's work on whole arrays, in far memory, in numpy.memmap under the same
// limit, and in plain memory.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/options.hpp"

namespace hanare::cli {

struct NumpyFlags {
    // Where nothing is given, `quick` decides.
    std::optional<std::string> compare;
    std::optional<std::string> cases;
    std::optional<std::string> size;
    std::optional<std::string> rounds;
    std::optional<std::string> patience_s;
    std::optional<std::string> python;
    bool quick = false;
    std::optional<std::string> json;
    std::shared_ptr<config::Overrides> overrides;
};

// Returns the exit status.
int run_bench_numpy(const NumpyFlags& flags);

}  // namespace hanare::cli
