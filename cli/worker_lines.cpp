// SPDX-License-Identifier: Apache-2.0
#include "cli/worker_lines.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sys/interrupt.hpp"

namespace hanare::cli {
namespace {

constexpr std::chrono::milliseconds kWaitMax = std::chrono::hours(1);

}  // namespace

bool WorkerLines::take(std::string& line) {
    const size_t end = pending_.find('\n');
    if (end == std::string::npos) return false;
    line = pending_.substr(0, end);
    pending_.erase(0, end + 1);
    return true;
}

WorkerLines::Next WorkerLines::next(Clock::time_point deadline, std::string& line) {
    char buffer[16384];
    while (true) {
        if (sys::Interrupt::requested()) return Next::kInterrupted;
        if (take(line)) return Next::kLine;
        pollfd waited[2] = {{worker_fd_, POLLIN, 0}, {interrupt_fd_, POLLIN, 0}};
        const auto left = std::min(
            kWaitMax, std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()));
        if (left.count() <= 0) return Next::kTooSlow;
        if (poll(waited, 2, static_cast<int>(left.count())) < 0 && errno != EINTR) {
            return Next::kClosed;
        }
        if (waited[0].revents == 0) continue;
        const ssize_t got = read(worker_fd_, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return Next::kClosed;
        pending_.append(buffer, static_cast<size_t>(got));
    }
}

}  // namespace hanare::cli
