// SPDX-License-Identifier: Apache-2.0
//
// Memory of a file without a name and without a disk (memfd), which other processes can map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "sys/file.hpp"
#include "sys/memory.hpp"

namespace hanare::sys {

// All holes.  Its length is fixed; only this user may open it again.
Result<FileDescriptor> create_shared_memory(size_t bytes);

// Makes the mapping one of the file, from its beginning, shared and read-write.
Result<void> map_shared(const Mapping& mapping, const FileDescriptor& file);

// Copies what the file has there, mapped or not; holes are zeros.  Returns 0 or an errno value.
// Async-signal-safe.
int copy_from_file(int file, uint64_t offset, std::byte* memory, size_t bytes) noexcept;

// Makes holes of whole pages of a mapping of the file.  Returns 0 or an errno value.
// Async-signal-safe.
int remove_pages(std::byte* memory, size_t bytes) noexcept;

// Another descriptor of the file that does not allow to write, also not by a mapping.
Result<FileDescriptor> reopen_read_only(const FileDescriptor& file);

// The file that another process shares by its name, for reading and writing; not open: errno says
// why.
FileDescriptor open_shared_file(const char* path) noexcept;

// All of a file that another process shares by its name, for reading and writing; its length is
// `bytes` at least.
Result<Mapping> map_shared_file(const char* path, size_t bytes);

// Bytes of a file that create_shared_memory() made; INVALID_ARGUMENT for any other.
Result<size_t> shared_memory_bytes(int file);

// The file's memory, for reading only; the mapping does not need the descriptor any more.
Result<Mapping> map_read_only(int file, size_t bytes);

// Makes the memory, a mapping of all of `file`, one of a new file with the same content, which it
// returns; who has the old file or a mapping of it keeps that.  What is written there meanwhile may
// be lost.  After an error nothing has changed.
Result<FileDescriptor> replace_shared_memory(std::span<std::byte> memory,
                                             const FileDescriptor& file);

}  // namespace hanare::sys
