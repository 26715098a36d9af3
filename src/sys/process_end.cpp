// SPDX-License-Identifier: Apache-2.0
#include "sys/process_end.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "sys/raw_call.hpp"

namespace hanare::sys {

int open_process(pid_t process, FileDescriptor& file) {
    const int number = above_standard(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
    if (number < 0) return errno;
    file = FileDescriptor(number);
    return 0;
}

bool has_ended(const FileDescriptor& process) {
    pollfd state = {.fd = process.number(), .events = POLLIN, .revents = 0};
    return poll(&state, 1, 0) == 1 && (state.revents & POLLIN) != 0;
}

bool has_ended(pid_t process) noexcept {
    const int saved_errno = errno;
    bool ended = false;
    if (const long file = raw::syscall(SYS_pidfd_open, process, 0); file >= 0) {
        pollfd state = {.fd = static_cast<int>(file), .events = POLLIN, .revents = 0};
        ended = raw::syscall(SYS_poll, &state, 1, 0) == 1 && (state.revents & POLLIN) != 0;
        raw::syscall(SYS_close, file);
    } else {
        ended = errno == ESRCH || (raw::syscall(SYS_kill, process, 0) != 0 && errno == ESRCH);
    }
    errno = saved_errno;
    return ended;
}

bool exists(pid_t process) { return kill(process, 0) == 0 || errno == EPERM; }

}  // namespace hanare::sys
