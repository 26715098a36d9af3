// SPDX-License-Identifier: Apache-2.0
//
// The exclusive or of memory: what parity is made of, and what is lost made again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hanare::compose {

// `into` ^= `from`, of so many bytes, a multiple of 64; they do not overlap.
inline void exclusive_or(std::byte* into, const std::byte* from, size_t bytes) noexcept {
    using Line [[gnu::vector_size(64)]] = uint64_t;
    for (size_t i = 0; i < bytes; i += sizeof(Line)) {
        Line line;
        Line other;
        memcpy(&line, into + i, sizeof line);
        memcpy(&other, from + i, sizeof other);
        line ^= other;
        memcpy(into + i, &line, sizeof line);
    }
}

// `into`: the exclusive or of `count` strips that lie beside each other, in one pass.
inline void exclusive_or_of(std::byte* into, const std::byte* strips, size_t strip_bytes,
                            uint32_t count) noexcept {
    using Line [[gnu::vector_size(64)]] = uint64_t;
    for (size_t i = 0; i < strip_bytes; i += sizeof(Line)) {
        Line line;
        memcpy(&line, strips + i, sizeof line);
        for (uint32_t strip = 1; strip < count; ++strip) {
            Line other;
            memcpy(&other, strips + strip * strip_bytes + i, sizeof other);
            line ^= other;
        }
        memcpy(into + i, &line, sizeof line);
    }
}

}  // namespace hanare::compose
