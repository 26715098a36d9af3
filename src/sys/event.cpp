// SPDX-License-Identifier: Apache-2.0
#include "sys/event.hpp"

#include <cerrno>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/raw_call.hpp"

namespace hanare::sys {

Result<EventFd> EventFd::open() {
    const int number = above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (number < 0) return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot create an eventfd");
    return EventFd(FileDescriptor(number));
}

void EventFd::post() noexcept {
    const int saved_errno = errno;
    const uint64_t one = 1;
    while (raw::syscall(SYS_write, file_.number(), &one, sizeof one) < 0 && errno == EINTR) {
    }
    errno = saved_errno;
}

void EventFd::clear() noexcept {
    const int saved_errno = errno;
    uint64_t count = 0;
    while (raw::syscall(SYS_read, file_.number(), &count, sizeof count) < 0 && errno == EINTR) {
    }
    errno = saved_errno;
}

Readable wait_until_readable(int first, int second, int timeout_ms) noexcept {
    const int saved_errno = errno;
    pollfd states[2] = {{.fd = first, .events = POLLIN, .revents = 0},
                        {.fd = second, .events = POLLIN, .revents = 0}};
    const long count = raw::syscall(SYS_poll, states, 2, timeout_ms);
    errno = saved_errno;
    if (count <= 0) return {};
    return {states[0].revents != 0, states[1].revents != 0};
}

Result<ReadySet> ReadySet::open() {
    FileDescriptor file(above_standard(epoll_create1(EPOLL_CLOEXEC)));
    if (file.number() < 0) return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot create an epoll");
    return ReadySet(std::move(file));
}

namespace {

int control(const FileDescriptor& set, int operation, int descriptor, uint32_t number,
            ReadySet::For what) noexcept {
    epoll_event event = {};
    event.events = what == ReadySet::For::kReading ? EPOLLIN : EPOLLOUT;
    event.data.u32 = number;
    const int saved_errno = errno;
    const int error = epoll_ctl(set.number(), operation, descriptor, &event) == 0 ? 0 : errno;
    errno = saved_errno;
    return error;
}

}  // namespace

int ReadySet::add(int descriptor, uint32_t number, For what) noexcept {
    return control(file_, EPOLL_CTL_ADD, descriptor, number, what);
}

int ReadySet::change(int descriptor, uint32_t number, For what) noexcept {
    return control(file_, EPOLL_CTL_MOD, descriptor, number, what);
}

void ReadySet::remove(int descriptor) noexcept {
    const int saved_errno = errno;
    epoll_ctl(file_.number(), EPOLL_CTL_DEL, descriptor, nullptr);
    errno = saved_errno;
}

int64_t ReadySet::next() const noexcept {
    const int saved_errno = errno;
    epoll_event event = {};
    const long count = raw::syscall(SYS_epoll_wait, file_.number(), &event, 1, 0);
    errno = saved_errno;
    return count == 1 ? static_cast<int64_t>(event.data.u32) : -1;
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
    const long count = raw::syscall(SYS_epoll_wait, file_.number(), events, 2, timeout_ms);
    errno = saved_errno;
    Woken woken = Woken::kNeither;
    for (long i = 0; i < count; ++i) {
        if (woken != Woken::kEnd) woken = static_cast<Woken>(events[i].data.u32);
    }
    return woken;
}

}  // namespace hanare::sys
