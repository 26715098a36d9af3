// SPDX-License-Identifier: Apache-2.0
#include "sys/event.hpp"

#include <cerrno>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hanare::sys {

Result<EventFd> EventFd::open() {
    const int number = above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (number < 0) return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot create an eventfd");
    return EventFd(FileDescriptor(number));
}

void EventFd::post() noexcept {
    const int saved_errno = errno;
    const uint64_t one = 1;
    while (syscall(SYS_write, file_.number(), &one, sizeof one) < 0 && errno == EINTR) {
    }
    errno = saved_errno;
}

void EventFd::clear() noexcept {
    const int saved_errno = errno;
    uint64_t count = 0;
    while (syscall(SYS_read, file_.number(), &count, sizeof count) < 0 && errno == EINTR) {
    }
    errno = saved_errno;
}

}  // namespace hanare::sys
