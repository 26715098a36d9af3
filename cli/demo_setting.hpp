// SPDX-License-Identifier: Apache-2.0
//
// From the flags of `hanare demo` to what it runs.  Used by the main thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/demo_runner.hpp"
#include "config/options.hpp"

namespace hanare::cli {

struct DemoFlags {
    std::string size = "2G";
    std::string systems = "plain,mmap,swap,hanare";
    std::optional<std::string> json;
    std::string worker;
    std::string rounds = "1";
    std::string patience_s = "120";
    std::shared_ptr<config::Overrides> overrides;
};

// All errors of these two name the flag, or what the machine lacks.
Result<std::vector<std::string>> parse_systems(const std::string& list);
Result<DemoSetting> make_setting(const DemoFlags& flags);

}  // namespace hanare::cli
