// SPDX-License-Identifier: Apache-2.0
//
// The other process of `hanare bench fabric`, whose memory is used.  It takes a line for whatever
// its program is to do, and writes lines when it has begun and when it is done.
#pragma once

#include <string>

#include "base/result.hpp"
#include "cli/worker_lines.hpp"
#include "sys/child.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {

class FabricTargetProcess {
public:
    static Result<FabricTargetProcess> start(const sys::Interrupt& interrupt);

    Result<std::string> next_line();
    Result<void> tell(const std::string& what);

private:
    FabricTargetProcess(sys::Child child, WorkerLines lines)
        : child_(std::move(child)), lines_(std::move(lines)) {}

    sys::Child child_;
    WorkerLines lines_;
};

// What it does, until its input ends.
Result<void> serve_as_fabric_target();

}  // namespace hanare::cli
