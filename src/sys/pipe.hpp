// SPDX-License-Identifier: Apache-2.0
//
// Pipes, and other descriptors that programs are given for their standard input.  All are closed on
// exec.  Any thread.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::sys {

struct Pipe {
    FileDescriptor from;
    FileDescriptor to;
};
Result<Pipe> make_pipe();

// What a pipe holds when nobody reads, at least.
inline constexpr size_t kPipeBytesMin = 4096;

// Into a pipe that has room for it.
Result<void> put_into(const FileDescriptor& pipe, std::span<const std::byte> bytes);

// The end of a pipe in which these bytes are, at most kPipeBytesMin, and no more will come.
Result<FileDescriptor> pipe_holding(std::span<const std::byte> bytes);

// /dev/null, for reading.
Result<FileDescriptor> open_nothing();

// Exactly as many bytes, so that what follows is somebody else's.  NOT_FOUND: the end comes first;
// TIMEOUT.
Result<void> read_exactly(int descriptor, std::span<std::byte> bytes, int timeout_ms);

}  // namespace hanare::sys
