// SPDX-License-Identifier: Apache-2.0
//
// The lines that a worker process writes, one at a time, while signals and the clock are watched.
// Used by the main thread.
#pragma once

#include <chrono>
#include <string>

namespace hanare::cli {

class WorkerLines {
public:
    using Clock = std::chrono::steady_clock;

    WorkerLines(int worker_fd, int interrupt_fd)
        : worker_fd_(worker_fd), interrupt_fd_(interrupt_fd) {}

    enum class Next {
        kLine,         // `line` holds it, without its end
        kClosed,       // the worker has closed its end
        kInterrupted,  // a signal asks us to stop
        kTooSlow,      // the deadline has passed
    };
    Next next(Clock::time_point deadline, std::string& line);

private:
    bool take(std::string& line);

    int worker_fd_;
    int interrupt_fd_;
    std::string pending_;
};

}  // namespace hanare::cli
