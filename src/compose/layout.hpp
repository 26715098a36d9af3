// SPDX-License-Identifier: Apache-2.0
//
// Layout: how the bytes of a composed store lie in its members.  The store is divided into groups;
// a group has `data` chunks of 4 MiB for what is kept in it and `total` in all, each in another
// member.  A chunk's number within its group is its role; roles from `data` on hold redundancy.
//
//   list    1 chunk
//   mirror  1 chunk of data, and copies of it
//   parity  K chunks of data and one of their exclusive or.  Data goes round them in strips, so
//           that a block of K strips is a stripe: its parity follows from it alone, and a write of
//           it reads nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.hpp"

namespace hanare::compose {

enum class Kind : uint8_t { kList, kMirror, kParity };

struct Layout {
    static constexpr uint64_t kChunkBytes = 4 * kMiB;
    static constexpr uint32_t kRolesMax = 9;
    static constexpr uint64_t kStripBytesMax = 64 * kKiB;

    Kind kind = Kind::kList;
    uint32_t data = 1;
    uint32_t total = 1;
    uint64_t strip_bytes = kChunkBytes;

    static constexpr Layout list() { return {}; }
    static constexpr Layout mirror(uint32_t copies) {
        return {Kind::kMirror, 1, copies, kChunkBytes};
    }
    // `data` is a power of two; blocks of `block_bytes` are stripes, if they are not too small.
    static constexpr Layout parity(uint32_t data, uint64_t block_bytes) {
        const uint64_t wanted = block_bytes / data;
        const uint64_t most = wanted < kStripBytesMax ? wanted : kStripBytesMax;
        return {Kind::kParity, data, data + 1, most > kOsPageBytes ? most : kOsPageBytes};
    }

    uint32_t spares() const { return total - data; }  // members that may be lost
    uint64_t group_bytes() const { return data * kChunkBytes; }
    uint64_t stripe_bytes() const { return data * strip_bytes; }

    // Where a byte of a group lies.
    struct Spot {
        uint32_t role;
        uint64_t offset;  // in the chunk
        uint64_t bytes;   // up to the end of the strip
    };
    Spot spot_of(uint64_t offset_in_group) const {
        const uint64_t strip = offset_in_group / strip_bytes;
        const uint64_t within = offset_in_group % strip_bytes;
        return {static_cast<uint32_t>(strip % data), strip / data * strip_bytes + within,
                strip_bytes - within};
    }
};

}  // namespace hanare::compose
