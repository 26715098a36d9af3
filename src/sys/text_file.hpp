// SPDX-License-Identifier: Apache-2.0
//
// Whole small files as text: /proc, /sys and cgroup files.  Any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace hanare::sys {

Result<std::string> read_text_file(const std::string& path);

// One write(2) into an existing file, as kernel interfaces want it.
Result<void> write_text_file(const std::string& path, std::string_view text);

}  // namespace hanare::sys
