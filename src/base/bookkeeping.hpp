// SPDX-License-Identifier: Apache-2.0
//
// What Hanare's tables take of local memory for each block, wherever the block is: 32 bytes at
// most, the size of an entry of DLM's page table (DLM 2009, section 7.2, Table 9).  Counted apart,
// since DLM has none of them, are maps of what lies within a block, checksums, and the tags and
// versions of sealed blocks. Tables are addresses until they are used; then the kernel gives them
// memory page by page.
#pragma once

#include <cstdint>

namespace hanare {

// Its state and its frame.
inline constexpr uint64_t kBlockEntryBytes = 8;
// Of an unmodified program's memory also: where the store has it, and what the program may do with
// it.
inline constexpr uint64_t kAdoptedBlockBytes = 5;
// The same, once the store has it: which processes hold the place.
inline constexpr uint64_t kStoredSlotBytes = 8;
inline constexpr uint64_t kBookkeepingMax = 32;
static_assert(kBlockEntryBytes + kAdoptedBlockBytes + kStoredSlotBytes <= kBookkeepingMax);

// Counted apart.  Which parts of a block the store has:
inline constexpr uint64_t kBlockMapBytes = 8;
// A checksum for each part (a block, or a 64th of it, 4 KiB at least):
inline constexpr uint64_t kPartChecksumBytes = 4;
// The tag and the version of 4 KiB that a memory server keeps sealed:
inline constexpr uint64_t kSealBytes = 24;

}  // namespace hanare
