// SPDX-License-Identifier: Apache-2.0
//
// Which descriptors are of files whose reads and writes never sleep for long: regular files, block
// devices, /dev/zero and its kind.  Remembered, since asking is a system call; forgotten when the
// number is closed.  An answer that has become wrong keeps a block in memory for longer, no more.
//
// Of some of them a transfer may begin without any look at the memory (hook::let_transfers_begin):
// what the kernel does not find there, or loses on the way, it leaves out, says so, and no byte of
// the file is lost or passed over.  So it is where the kernel copies between memory and its cache:
// regular files of the usual file systems, unless O_DIRECT lets a device write into memory, or
// O_APPEND makes a write one piece for others; /dev/zero and its kind.  Calls that go on where the
// last one has ended are one piece for whoever has the same description, so they begin so only
// while nobody else can: another thread, a child of fork, who has it from before or after an exec.
//
// Any thread, async-signal-safe; compiled for general registers only.
#pragma once

#include <atomic>
#include <cstdint>

#include "hook/system_calls.hpp"

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

// A file that transfers promptly, and has done so some times: its transfers may begin at once from
// now on, if it is of those.
void consider_beginning(uint64_t file) noexcept;
// Transfers of no file do so any more: they may mean something else without being seen.
void end_beginning() noexcept;
// Those in order do not: there is about to be a thread, or a child.
void end_beginning_in_order() noexcept;
// RLIMIT_FSIZE: a write across it is shorter, and the next one is told of by a signal.
bool is_file_size_limited() noexcept;
// In a child of a fork, which has its own descriptors.
void begin_anew_in_child() noexcept;

// These numbers, the last one included, are about to mean something else.
void forget_files(uint64_t first, uint64_t last) noexcept;

}  // namespace hanare::intercept
