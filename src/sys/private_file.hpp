// SPDX-License-Identifier: Apache-2.0
//
// Files that only their owner can read or change.  Any thread.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.hpp"

namespace hanare::sys {

// All of the file.  NOT_FOUND; PERMISSION: it is not a regular file of this user that nobody else
// may read or write; INVALID_ARGUMENT: it is longer than that.
Result<std::string> read_private_file(const std::string& path, size_t bytes_max);

// What can be read from a descriptor up to its end, whatever it is.  It stays open.
Result<std::string> read_to_end(int descriptor, size_t bytes_max);

}  // namespace hanare::sys
