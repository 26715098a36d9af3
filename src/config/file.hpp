// SPDX-License-Identifier: Apache-2.0
//
// The configuration file: TOML, flat, one key per option.  Values become text, so that one rule
// per option checks them wherever they come from.  file.cpp is the only user of toml++.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace hanare::config {

struct FileEntry {
    std::string key;
    std::string text;
    unsigned line = 0;
};

// `path` is for messages only.
Result<std::vector<FileEntry>> parse_file_text(std::string_view toml, const std::string& path);

// NOT_FOUND when there is no such file.
Result<std::vector<FileEntry>> read_file(const std::string& path);

}  // namespace hanare::config
