// SPDX-License-Identifier: Apache-2.0
//
// Where the tasks of a space lie: each in a partition of its own, one behind the other, from a
// place that the kernel gives to nobody else by itself and that differs from space to space.
#pragma once

#include <cstdint>

namespace hanare::space {

// All partitions together fit between the place of programs and the kernel's mappings.
inline constexpr uint64_t kPartitionBytes = uint64_t{32} << 30;
inline constexpr uint32_t kTasksMax = 1024;
inline constexpr uint64_t kSpaceBytes = kPartitionBytes * kTasksMax;
// Behind them, what tasks share.
inline constexpr uint64_t kSharedBytes = uint64_t{4} << 40;
inline constexpr uint32_t kSharedMax = 4096;  // mappings
inline constexpr uint64_t kFirstBegin = uint64_t{0x1000} << 32;
inline constexpr uint64_t kLastBegin = uint64_t{0x4000} << 32;

}  // namespace hanare::space
