// SPDX-License-Identifier: Apache-2.0
#include "sys/process_namespace.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

#include "sys/raw_call.hpp"

namespace hanare::sys {

uint64_t process_namespace() noexcept {
    const int saved_errno = errno;
    struct stat status = {};
    const bool is_known =
        raw::syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &status, 0) == 0;
    errno = saved_errno;
    return is_known ? status.st_ino : 0;
}

}  // namespace hanare::sys
