// SPDX-License-Identifier: Apache-2.0
//
// Rings: memory for so many positions at a time.  A position's place is its number modulo the
// ring's length; where a grid lies in memory, the ring is as long as the grid.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sys/memory.hpp"

namespace hanare::stencil {

struct Ring {
    std::byte* memory = nullptr;
    int64_t length = 0;  // positions
    size_t position_bytes = 0;
    size_t sheet_bytes = 0;

    std::byte* at(int64_t position) const {
        // A division is not for nothing where parts are small.
        const int64_t slot = position < length ? position : position % length;
        return memory + static_cast<size_t>(slot) * position_bytes;
    }
    std::byte* plane(int64_t position, int64_t sheet) const {
        return at(position) + static_cast<size_t>(sheet) * sheet_bytes;
    }
    size_t bytes() const { return static_cast<size_t>(length) * position_bytes; }
};

// A field's rings: [0] holds it when a pass begins, [1] is there if writes go to another buffer.
struct FieldRings {
    std::array<Ring, 2> rings;
};

}  // namespace hanare::stencil
