// SPDX-License-Identifier: Apache-2.0
//
// One of the two processes that `hanare bench intercept` compares, kept alive through all rounds:
// the worker (intercept_worker.cpp), plainly or below `hanare run`.  Used by the main thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/intercept_case.hpp"
#include "cli/worker_lines.hpp"
#include "sys/child.hpp"
#include "sys/file.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {

class InterceptStation {
public:
    // `store` is one as --store takes it; unused by the plain one.
    static Result<InterceptStation> open(bool below_run, const std::string& store,
                                         const sys::Interrupt& interrupt);

    // Nanoseconds of one call or piece of work.
    Result<double> measure(const bench::InterceptCase& which, uint64_t for_ns);

    // Ends the process.  How many of its system calls were given far memory and protected; 0 for
    // the plain one.
    Result<uint64_t> close();

private:
    static Result<InterceptStation> start(const std::vector<std::string>& arguments,
                                          const std::string& program,
                                          sys::FileDescriptor statistics,
                                          const sys::Interrupt& interrupt);
    InterceptStation(sys::Child child, sys::FileDescriptor statistics, WorkerLines lines)
        : child_(std::move(child)), statistics_(std::move(statistics)), lines_(std::move(lines)) {}

    sys::Child child_;
    sys::FileDescriptor statistics_;  // of `hanare run`
    WorkerLines lines_;
};

}  // namespace hanare::cli
