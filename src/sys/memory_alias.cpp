// SPDX-License-Identifier: Apache-2.0
#include "sys/memory_alias.hpp"

#include <sys/mman.h>

#include <cerrno>

namespace hanare::sys {

// To make 0 bytes of a shared mapping larger is how mremap(2) maps its pages once more.
int alias_shared_memory(void* target, const void* memory, size_t bytes) noexcept {
    void* const mapped =
        mremap(const_cast<void*>(memory), 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    return mapped == MAP_FAILED ? errno : 0;
}

}  // namespace hanare::sys
