// SPDX-License-Identifier: Apache-2.0
#include "sys/event.hpp"

#include <cerrno>
#include <sys/epoll.h>
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

Result<WorkWait> WorkWait::open(int work, const EventFd& end) {
    FileDescriptor file(above_standard(epoll_create1(EPOLL_CLOEXEC)));
    if (file.number() < 0) return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot create an epoll");
    epoll_event of_work = {EPOLLIN | EPOLLEXCLUSIVE, {}};
    of_work.data.u32 = static_cast<uint32_t>(Woken::kWork);
    epoll_event of_end = {EPOLLIN, {}};
    of_end.data.u32 = static_cast<uint32_t>(Woken::kEnd);
    if (epoll_ctl(file.number(), EPOLL_CTL_ADD, work, &of_work) != 0 ||
        epoll_ctl(file.number(), EPOLL_CTL_ADD, end.number(), &of_end) != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot wait with epoll");
    }
    return WorkWait(std::move(file));
}

WorkWait::Woken WorkWait::wait(int timeout_ms) const noexcept {
    const int saved_errno = errno;
    epoll_event events[2] = {};
    // Not epoll_wait(3), which is a cancellation point.
    const long count = syscall(SYS_epoll_wait, file_.number(), events, 2, timeout_ms);
    errno = saved_errno;
    Woken woken = Woken::kNeither;
    for (long i = 0; i < count; ++i) {
        if (woken != Woken::kEnd) woken = static_cast<Woken>(events[i].data.u32);
    }
    return woken;
}

}  // namespace hanare::sys
