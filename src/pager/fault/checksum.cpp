// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/checksum.hpp"

namespace hanare::pager {

// The same function compiled for two instruction sets (checksum_xxh3.inc).
namespace sse2 {
uint64_t xxh3(const std::byte* memory, size_t bytes, uint64_t seed) noexcept;
}
namespace avx2 {
uint64_t xxh3(const std::byte* memory, size_t bytes, uint64_t seed) noexcept;
}

uint32_t part_checksum(const std::byte* memory, size_t bytes, uint64_t store_offset) noexcept {
    // Reads a variable that the start of the program has set.
    const uint64_t hash = __builtin_cpu_supports("avx2") ? avx2::xxh3(memory, bytes, store_offset)
                                                         : sse2::xxh3(memory, bytes, store_offset);
    return static_cast<uint32_t>(hash);
}

}  // namespace hanare::pager
