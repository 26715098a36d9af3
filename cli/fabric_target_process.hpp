// SPDX-License-Identifier: Apache-2.0
//
// The other process of `hanare bench fabric`, whose memory is used.  It takes a line for whatever
// its program is to do, and writes lines when it has begun and when it is done.
#pragma once

#include <string>

#include "base/result.hpp"
#include "bench/fabric_signal.hpp"
#include "cli/worker_lines.hpp"
#include "sys/child.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {

class FabricTargetProcess {
public:
    // On the other side of `network` (fabric_network.hpp).
    static Result<FabricTargetProcess> start(const std::string& network,
                                             const sys::Interrupt& interrupt);

    pid_t pid() const { return child_.pid(); }
    Result<std::string> next_line();
    Result<void> tell(const std::string& what);
    // Its program is as in bench/fabric_signal.hpp; the next line is what the source has to know.
    Result<void> begin_signals(bench::TargetState state, bench::Caller caller);

private:
    FabricTargetProcess(sys::Child child, WorkerLines lines)
        : child_(std::move(child)), lines_(std::move(lines)) {}

    sys::Child child_;
    WorkerLines lines_;
};

// What it does, until its input ends.
Result<void> serve_as_fabric_target(const std::string& network);

}  // namespace hanare::cli
