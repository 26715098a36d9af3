// SPDX-License-Identifier: Apache-2.0
#include "sys/input_relay.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace hanare::sys {

InputRelay::InputRelay(int from, FileDescriptor to) noexcept : from_(from), to_(std::move(to)) {
    // A pipe that has room for a part takes that.
    fcntl(to_.number(), F_SETFL, O_NONBLOCK | O_WRONLY);
}

bool InputRelay::is_held_back() const noexcept {
    if (!waits_to_read()) return false;
    const int saved_errno = errno;
    const pid_t foreground = tcgetpgrp(from_);  // -1: it is not our terminal
    errno = saved_errno;
    return foreground >= 0 && foreground != getpgrp();
}

void InputRelay::go_on() noexcept {
    if (is_held_back()) return;
    if (waits_to_read()) {
        const ssize_t got = read(from_, held_.data(), held_.size());
        if (got < 0 && is_transient(errno)) return;
        begin_ = 0;
        end_ = got > 0 ? static_cast<size_t>(got) : 0;
        if (got <= 0) to_.close();
        return;
    }
    const ssize_t put = write(to_.number(), held_.data() + begin_, end_ - begin_);
    if (put >= 0) {
        begin_ += static_cast<size_t>(put);
    } else if (!is_transient(errno)) {
        begin_ = end_;
        to_.close();
    }
}

}  // namespace hanare::sys
