// SPDX-License-Identifier: Apache-2.0
//
// The interpreter for what is written in Python.  Any thread.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"

namespace hanare::cli {

// The path of the one that is named, of $HANARE_PYTHON, which the package's own command sets, or
// of python3.
Result<std::string> find_python(const std::optional<std::string>& named);

}  // namespace hanare::cli
