// SPDX-License-Identifier: Apache-2.0
//
// Diffs: what a task has changed in a block since it took a copy of it (the twin), to be applied to
// the home's copy (TreadMarks: Keleher et al. 1994; several writers).  Exact to the byte, so that
// tasks may write neighbouring bytes of a word at the same time.
//
// A diff is the number of its block, a bit for each line of 64 bytes in which something has
// changed, and for each of these lines a bit for each byte, and the bytes.  So it is never longer
// than kDiffBytesMax, and where all of a line has changed its bytes take 72.
//
// No state; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dsm/segment.hpp"

namespace hanare::dsm {

inline constexpr size_t kLineBytes = 64;
inline constexpr size_t kLinesPerBlock = kBlockBytes / kLineBytes;
inline constexpr size_t kDiffBytesMax =
    sizeof(uint32_t) + sizeof(uint64_t) + kLinesPerBlock * (sizeof(uint64_t) + kLineBytes);

// Writes the diff to `room`, of kDiffBytesMax; returns its bytes, 0 where nothing has changed.
size_t make_diff(uint32_t block, const std::byte* twin, const std::byte* now,
                 std::byte* room) noexcept;

// Whether the blocks differ.  Others may write to them meanwhile: what differs all the time is
// found, which memcmp() does not promise, since it may look twice at what it has found to differ,
// and take the blocks for equal where that has become so.
bool differs(const std::byte* one, const std::byte* other) noexcept;

// Applies the diff at the beginning of `bytes` to the memory that `place` gives for its block
// (null: there is none of that number).  Bytes that have not changed are neither read nor written.
// Returns how long it was; 0: it is none.
using BlockPlace = std::byte* (*)(void* context, uint32_t block) noexcept;
size_t apply_diff(std::span<const std::byte> bytes, BlockPlace place, void* context) noexcept;

// Whose diff it is; of fewer bytes than a number has, UINT32_MAX, which no block has.
uint32_t diff_block(std::span<const std::byte> diffs) noexcept;

// How long the diff at the beginning of what make_diff() has made is.
size_t diff_bytes(std::span<const std::byte> diffs) noexcept;

}  // namespace hanare::dsm
