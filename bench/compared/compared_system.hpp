// SPDX-License-Identifier: Apache-2.0
//
// A system that `hanare bench fabric` is compared with, as two processes: a source, which is told
// by lines what to measure, and a target, which exposes memory and is told by the source what to
// do. Used by one thread at each end.
#pragma once

#include <cstdint>
#include <span>

#include "bench/compared/control.hpp"
#include "bench/fabric_flights.hpp"

namespace hanare::bench {

class ComparedSystem : public FlightSource {
public:
    // The target's side: the library does what has come for it.
    virtual void progress() = 0;
    // The source's: a get of a program that has not used the target's memory before, and does not
    // afterwards.
    virtual Result<void> get_alone(uint64_t offset, std::span<std::byte> data) = 0;
};

// The source: answers the lines of its standard input, "run CASE OPERATIONS SEED" by "time
// MICROSECONDS" and "passive TIMES" by "times MICROSECONDS...", until it ends.  The first line it
// writes is "ready".
Result<void> be_source(ComparedSystem& system, Control& control);

// The target, until the source ends.
Result<void> be_target(ComparedSystem& system, Control& control);

// The exit status of a program that has ended so; what has failed is said in a line.
int exit_status_of(const Result<void>& result);

}  // namespace hanare::bench
