// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/units.hpp"

namespace hanare {

// Asks for memory that is read next, or its beginning, while something else is worked on.  For who
// goes through memory page by page, faster than it comes: what processors fetch ahead by themselves
// ends with each page.
inline void fetch_ahead(const std::byte* memory, size_t bytes) noexcept {
    constexpr size_t kLineBytes = 64;
    constexpr size_t kMost = 8 * kKiB;  // or it would push out what is worked on
    const size_t end = std::min(bytes, kMost);
    for (size_t at = 0; at < end; at += kLineBytes) __builtin_prefetch(memory + at);
}

}  // namespace hanare
