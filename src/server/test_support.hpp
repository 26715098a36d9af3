// SPDX-License-Identifier: Apache-2.0
//
// Included by *_test.cpp only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sys/clock.hpp"
#include "sys/lock.hpp"

namespace hanare::server {

// Whether it becomes so, within a time that nobody needs whose threads run.
template <typename Condition>
bool comes_true(Condition condition) {
    const uint64_t end_ns = sys::now_ns() + 20'000'000'000;
    while (!condition()) {
        if (sys::now_ns() > end_ns) return false;
        sys::yield_for_us(200);
    }
    return true;
}

inline bool is_zero(std::span<const std::byte> memory) {
    return std::ranges::all_of(memory, [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace hanare::server
