// SPDX-License-Identifier: Apache-2.0
//
// How many mappings this process has and may have.  The kernel counts each run of pages with equal
// properties; vm.max_map_count bounds them.  Any thread, not in a fault handler.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"

namespace hanare::sys {

// Where each mapping of the process begins, in rising order.
Result<std::vector<uintptr_t>> mapping_starts();

// vm.max_map_count; the kernel's default where it cannot be read.
uint64_t mapping_count_max();

}  // namespace hanare::sys
