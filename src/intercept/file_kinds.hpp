// SPDX-License-Identifier: Apache-2.0
//
// Which descriptors are of files whose reads and writes never sleep for long: regular files, block
// devices, /dev/zero and its kind.  Remembered, since asking is a system call; forgotten when the
// number is closed.  An answer that has become wrong keeps a block in memory for longer, no more.
// Any thread, async-signal-safe; compiled for general registers only.
#pragma once

#include <atomic>
#include <cstdint>

namespace hanare::intercept {

enum class FileKind : uint8_t { kUnknown, kPrompt, kSlow };

// By number, as far as it was asked for.
inline constexpr uint64_t kFilesMax = 1024;
extern std::atomic<FileKind> file_kinds[kFilesMax];

FileKind find_file_kind(uint64_t file) noexcept;

// As far as it was asked for.
inline bool is_known_to_be_prompt(uint64_t file) noexcept {
    return file < kFilesMax &&
           file_kinds[file].load(std::memory_order_relaxed) == FileKind::kPrompt;
}

inline bool transfers_promptly(uint64_t file) noexcept {
    if (file >= kFilesMax) return false;
    const FileKind kind = file_kinds[file].load(std::memory_order_relaxed);
    return (kind == FileKind::kUnknown ? find_file_kind(file) : kind) == FileKind::kPrompt;
}

// These numbers, the last one included, are about to mean something else.
void forget_files(uint64_t first, uint64_t last) noexcept;

}  // namespace hanare::intercept
