// SPDX-License-Identifier: Apache-2.0
#include "sys/populate.hpp"

#include <sys/mman.h>

#include "sys/inject.hpp"
#include "sys/memory.hpp"

namespace hanare::sys {

int populate(void* address, size_t bytes) noexcept {
    if (const int injected = inject::next_errno(inject::Call::kPopulate); injected > 0) {
        return injected;
    }
    return advise(address, bytes, MADV_POPULATE_WRITE);
}

}  // namespace hanare::sys
