// SPDX-License-Identifier: Apache-2.0
//
// `--secret-file` of a memory server and of whoever asks one, and secrets that come as a line of
// standard input.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "fabric/secret.hpp"

namespace hanare::cli {

// Of the named file, or of standard input, up to its end, where that is "-"; nothing without a
// name.
Result<std::optional<fabric::Secret>> read_secret(const std::optional<std::string>& file);

// The first line of standard input: hexadecimal digits and the end of the line, exactly as many
// bytes.  What follows is somebody else's.
inline constexpr size_t kSecretLineBytes = 65;
Result<fabric::Secret> read_secret_line(int timeout_ms);
// Such a line; its owner wipes it.
std::string secret_line(const fabric::Secret& secret);

}  // namespace hanare::cli
