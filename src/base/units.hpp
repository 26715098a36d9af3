// SPDX-License-Identifier: Apache-2.0
//
// Sizes as people write them, and powers of two.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace hanare {

inline constexpr uint64_t kKiB = 1024;
inline constexpr uint64_t kMiB = 1024 * kKiB;
inline constexpr uint64_t kGiB = 1024 * kMiB;
inline constexpr uint64_t kOsPageBytes = 4 * kKiB;  // x86-64
inline constexpr uint64_t kHugePageBytes = 2 * kMiB;

// Parses "4096", "512M", "2G", "1.5GiB", "64KB" (K, M, G, T are powers of 1024 with or without B
// or iB).  `what` names the option in the error text.  Zero, negative, empty, trailing garbage and
// overflow are errors, whose text says what is `allowed`.
inline constexpr std::string_view kSizesAllowed = "a positive size such as 4096, 512M, 2G or 2GiB";
Result<uint64_t> parse_size(std::string_view what, std::string_view text,
                            std::string_view allowed = kSizesAllowed);

// "512 MiB", "1.5 GiB", "4096 B": at most two decimals, largest unit that keeps the value >= 1.
std::string format_size(uint64_t bytes);

constexpr bool is_power_of_two(uint64_t value) { return std::has_single_bit(value); }
// `unit` is a power of two.
constexpr uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) & ~(unit - 1);
}
constexpr uint64_t round_down(uint64_t value, uint64_t unit) { return value & ~(unit - 1); }

}  // namespace hanare
