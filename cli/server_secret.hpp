// SPDX-License-Identifier: Apache-2.0
//
// `--secret-file` of a memory server and of whoever asks one.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "fabric/secret.hpp"

namespace hanare::cli {

// Of the named file, or of standard input, up to its end, where that is "-"; nothing without a
// name.
Result<std::optional<fabric::Secret>> read_secret(const std::optional<std::string>& file);

}  // namespace hanare::cli
