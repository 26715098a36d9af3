// SPDX-License-Identifier: Apache-2.0
//
// An ELF file as the kernel's exec maps it, but into a partition.  x86-64, position-independent
// programs and loaders.  For the root of a space.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "space/partition.hpp"

namespace hanare::space {

struct Image {
    uint64_t base = 0;
    uint64_t entry = 0;
    uint64_t headers = 0;  // of the program, in memory
    uint64_t header_count = 0;
    std::string loader;  // that it names; empty where it needs none
};

// INVALID_ARGUMENT for a file that is no such program, NOT_SUPPORTED for one that cannot lie
// anywhere, NOT_FOUND, PERMISSION, NO_MEMORY, SYSTEM.
Result<Image> map_image(Partition& partition, const std::string& path);

}  // namespace hanare::space
