// SPDX-License-Identifier: Apache-2.0
//
// Checksum of a part of a block on its way to and from the store: XXH3, 32 of its bits, seeded with
// the place of the part, so that one which comes back from the wrong place is found, too.  Neither
// allocates nor locks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hanare::pager {

uint32_t part_checksum(const std::byte* memory, size_t bytes, uint64_t store_offset) noexcept;

}  // namespace hanare::pager
