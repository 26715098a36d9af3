// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/checksum.hpp"

#include "sys/processor.hpp"

namespace hanare::pager {

// The same function compiled for two instruction sets (checksum_xxh3.inc).
namespace sse2 {
uint64_t xxh3(const std::byte* memory, size_t bytes, uint64_t seed) noexcept;
}
namespace avx2 {
uint64_t xxh3(const std::byte* memory, size_t bytes, uint64_t seed) noexcept;
}

uint32_t part_checksum(const std::byte* memory, size_t bytes, uint64_t store_offset) noexcept {
    const uint64_t hash = sys::has_avx2() ? avx2::xxh3(memory, bytes, store_offset)
                                          : sse2::xxh3(memory, bytes, store_offset);
    return static_cast<uint32_t>(hash);
}

}  // namespace hanare::pager
