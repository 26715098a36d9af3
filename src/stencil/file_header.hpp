// SPDX-License-Identifier: Apache-2.0
//
// The first pages of a grid's file: what the grid is and which state of it is whole.  There are two
// copies, the second written when the first is on the device, each with a number and a checksum:
// one of them may be damaged, or cut off by a crash.  After them come, each at a multiple of 4 KiB,
// the regions: for each field, for each of its levels, for each copy (two of ping-pong states), all
// positions (geometry.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "stencil/geometry.hpp"
#include "stencil/program.hpp"

namespace hanare::stencil {

inline constexpr size_t kHeaderPageBytes = 4096;
inline constexpr size_t kHeaderBytes = 2 * kHeaderPageBytes;

struct FileHeader {
    GridShape shape;
    std::vector<FieldSpec> fields;
    hanare_durability durability = HANARE_DURABILITY_IN_PLACE;
    uint64_t sequence = 0;  // of this copy of the header; the larger is the newer
    uint64_t step = 0;
    uint32_t copy = 0;        // that states are in
    bool is_running = false;  // in place: what is there is of several steps
    uint64_t file_bytes = 0;
};

// Of 4096 bytes each.
void encode(const FileHeader& header, std::span<std::byte> page);
// CORRUPT: it is none, or was cut off; NOT_SUPPORTED: of another version.
Result<FileHeader> decode(std::span<const std::byte> page);

// Puts magic, version and checksum right, whatever else is in the page (for tests of decode()).
void make_plausible(std::span<std::byte> page);

}  // namespace hanare::stencil
