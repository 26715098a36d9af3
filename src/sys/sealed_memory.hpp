// SPDX-License-Identifier: Apache-2.0
//
// A few bytes in a file without a name (memfd) that nobody can change, for programs that inherit
// its descriptor: each finds them again, whoever has read them before.  Any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::sys {

// Closed on exec.
Result<FileDescriptor> sealed_memory_holding(std::span<const std::byte> bytes);

// Whether the descriptor, whatever it is, is one of these.
bool is_sealed_memory(int descriptor) noexcept;

// All of it, from its beginning; its offset, which other processes share, stays.
// INVALID_ARGUMENT: it is longer than that.
Result<std::string> read_sealed_memory(int descriptor, size_t bytes_max);

}  // namespace hanare::sys
