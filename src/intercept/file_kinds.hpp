// SPDX-License-Identifier: Apache-2.0
//
// Which descriptors are of files whose reads and writes never sleep for long: regular files, block
// devices, /dev/zero and its kind.  Remembered, since asking is a system call; forgotten when the
// number is closed.  An answer that has become wrong keeps a block in memory for longer, no more.
// Any thread, async-signal-safe; compiled for general registers only.
#pragma once

#include <cstdint>

namespace hanare::intercept {

bool transfers_promptly(uint64_t file) noexcept;

// These numbers, the last one included, are about to mean something else.
void forget_files(uint64_t first, uint64_t last) noexcept;

}  // namespace hanare::intercept
