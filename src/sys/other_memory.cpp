// SPDX-License-Identifier: Apache-2.0
#include "sys/other_memory.hpp"

#include <cerrno>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace hanare::sys {

int read_other_memory(int process, uint64_t address, std::span<std::byte> destination) noexcept {
    const int saved_errno = errno;
    int error = 0;
    for (size_t done = 0; error == 0 && done < destination.size();) {
        const iovec here = {destination.data() + done, destination.size() - done};
        const iovec there = {reinterpret_cast<void*>(address + done), here.iov_len};
        const long got = syscall(SYS_process_vm_readv, process, &here, 1, &there, 1, 0);
        if (got > 0) {
            done += static_cast<size_t>(got);
        } else {
            error = got == 0 ? EFAULT : errno;
        }
    }
    errno = saved_errno;
    return error;
}

}  // namespace hanare::sys
