// SPDX-License-Identifier: Apache-2.0
#include "sys/raw_write.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace hanare::sys {

long raw_write(int descriptor, const void* data, size_t bytes) noexcept {
    return syscall(SYS_write, descriptor, data, bytes);
}

}  // namespace hanare::sys
