// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/checksum.hpp"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wpedantic"
#define XXH_INLINE_ALL
#define XXH_NO_STREAM
#include <xxhash.h>
#pragma GCC diagnostic pop

namespace hanare::pager {

uint64_t block_checksum(const std::byte* memory, size_t bytes, uint64_t store_offset) noexcept {
    return XXH3_64bits_withSeed(memory, bytes, store_offset);
}

}  // namespace hanare::pager
