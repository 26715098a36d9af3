// SPDX-License-Identifier: Apache-2.0
//
// Where the tasks of a space lie: each in a partition of its own, one behind the other, from a
// place that differs from space to space, away from where the kernel maps by itself.
#pragma once

#include <cstdint>

#include "task/limits.hpp"

namespace hanare::space {

inline constexpr uint64_t kPartitionBytes = uint64_t{32} << 30;
using task::kTasksMax;
inline constexpr uint64_t kSpaceBytes = kPartitionBytes * kTasksMax;
// Behind them, what tasks share.
inline constexpr uint64_t kSharedBytes = uint64_t{4} << 40;
inline constexpr uint32_t kSharedMax = 4096;  // mappings
// All that is in these bounds, and so far to either side of the kernel's mappings, which grow from
// one place downwards, or upwards where the stack has no limit.
inline constexpr uint64_t kFirst = uint64_t{0x0200} << 32;
inline constexpr uint64_t kEnd = uint64_t{0x7000} << 32;
inline constexpr uint64_t kDistance = uint64_t{12} << 40;

}  // namespace hanare::space
