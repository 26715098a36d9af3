// SPDX-License-Identifier: Apache-2.0
//
// The far end of `hanare bench remote`: a process that starts memory servers on its side of the
// network and is the other end of the raw sockets.  Everything there ends with it.
#pragma once

#include <string>

#include "base/result.hpp"
#include "cli/remote_job.hpp"
#include "cli/worker_lines.hpp"
#include "sys/child.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {

class RemoteFarProcess {
public:
    // Joins the networks as well, which the caller's process has entered (fabric_network.hpp).
    static Result<RemoteFarProcess> start(const RemoteFarJob& job, const sys::Interrupt& interrupt);

    pid_t pid() const { return child_.pid(); }
    const RemoteFar& far() const { return far_; }
    // It serves one raw connection, until that ends; end_raw() waits until it has.
    Result<void> begin_raw();
    Result<void> end_raw();

private:
    RemoteFarProcess(sys::Child child, WorkerLines lines)
        : child_(std::move(child)), lines_(std::move(lines)) {}
    Result<std::string> next_line();
    Result<void> expect(const char* line);
    Result<void> join(const RemoteFarJob& job);

    sys::Child child_;
    WorkerLines lines_;
    RemoteFar far_;
};

// What it does, until its input ends; `job` is a RemoteFarJob as JSON.
Result<void> serve_as_remote_far(const std::string& job, const sys::Interrupt& interrupt);

}  // namespace hanare::cli
