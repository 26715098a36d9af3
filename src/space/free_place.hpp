// SPDX-License-Identifier: Apache-2.0
//
// Mapping where nothing is.  In tasks: no libc, no vector registers.
#pragma once

#include <cstdint>

#include "space/used_ranges.hpp"

namespace hanare::space {

// Of a system call, as they stand in its registers.
using Arguments = uint64_t[6];

inline constexpr int64_t kErrnoMax = 4095;
constexpr bool succeeded(int64_t result) noexcept { return result >= 0 || result < -kErrnoMax; }

// The mmap with these arguments, but at the first free place from `from` on, which is in use then.
// Goes on where something lies that was mapped by other means.  0: there is no room; a negative
// errno value.
int64_t map_at_free_place(UsedRanges& used, const Arguments& arguments, uint64_t bytes,
                          uint64_t from = 0) noexcept;

}  // namespace hanare::space
