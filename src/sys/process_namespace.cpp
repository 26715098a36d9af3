// SPDX-License-Identifier: Apache-2.0
#include "sys/process_namespace.hpp"

#include <cerrno>
#include <sys/stat.h>

namespace hanare::sys {

uint64_t process_namespace() noexcept {
    const int saved_errno = errno;
    struct stat status = {};
    const bool is_known = stat("/proc/self/ns/pid", &status) == 0;
    errno = saved_errno;
    return is_known ? status.st_ino : 0;
}

}  // namespace hanare::sys
