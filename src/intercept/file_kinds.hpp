// SPDX-License-Identifier: Apache-2.0
//
// Which descriptors are of files whose reads and writes never sleep for long: regular files, block
// devices, /dev/zero and its kind.  Remembered, since asking is a system call; forgotten when the
// number is closed.  An answer that has become wrong keeps a block in memory for longer, no more.
//
// Of some of them a transfer may begin without any look at the memory (hook::let_transfers_begin):
// what the kernel does not find there, or loses on the way, it leaves out and says so, and then the
// call is made again.  That must do no harm.  So it is with all that concerns /dev/zero and its
// kind; and with reads at offsets of regular files where the kernel copies from its cache: of the
// usual file systems, unless O_DIRECT lets a device write into memory.  Other reads go on where the
// last one has ended, which others may share, and others see what is written.  An answer that has
// become wrong would do harm here.
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
// In a child of a fork, which has its own descriptors.
void begin_anew_in_child() noexcept;

// Around what may make these numbers, the last one included, another file's: what was remembered of
// them is forgotten.  No destructor does it, which a cancelled thread would run; where one is
// cancelled in between no transfers begin any more.
void begin_to_change_files(uint64_t first, uint64_t last) noexcept;
void end_changing_files() noexcept;

}  // namespace hanare::intercept
