// SPDX-License-Identifier: Apache-2.0
#include "sys/poll_set.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace hanare::sys {

bool PollSet::add(int descriptor, Ready wanted) noexcept {
    if (count_ == kEntriesMax) return false;
    const int events = (wanted.to_read ? POLLIN : 0) | (wanted.to_write ? POLLOUT : 0);
    entries_[count_++] = {.fd = descriptor, .events = static_cast<short>(events), .revents = 0};
    return true;
}

void PollSet::wait(int timeout_ms) noexcept {
    const int saved_errno = errno;
    syscall(SYS_poll, entries_.data(), count_, timeout_ms);
    errno = saved_errno;
}

bool PollSet::is_ready(int descriptor) const noexcept {
    for (size_t i = 0; i < count_; ++i) {
        if (entries_[i].fd == descriptor && entries_[i].revents != 0) return true;
    }
    return false;
}

}  // namespace hanare::sys
