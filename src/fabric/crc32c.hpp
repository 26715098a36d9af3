// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C (Castagnoli; RFC 3720, appendix B.4), by the processor's instruction where it has one.
// Async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hanare::fabric {

// Goes on from `before`, which is 0 at the beginning.
uint32_t crc32c(uint32_t before, const std::byte* memory, size_t bytes) noexcept;

// The same without the instruction; for tests.
uint32_t crc32c_portable(uint32_t before, const std::byte* memory, size_t bytes) noexcept;

}  // namespace hanare::fabric
