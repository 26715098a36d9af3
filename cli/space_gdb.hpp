// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace hanare::cli {

// This process becomes gdb, attached to the task, with the symbols of its program and libraries and
// with more words of its command line.
Error become_gdb(const std::string& process, const std::vector<std::string>& words);

}  // namespace hanare::cli
