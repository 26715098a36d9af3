// SPDX-License-Identifier: Apache-2.0
//
// Cases of `hanare bench fabric` in which it matters what the target's program does at the moment:
// it computes, sleeps, or looks for signals now and then.  Measured is how long it takes until a
// handler runs there, with a signal of the fabric and with what the kernel has for it, and how long
// a get takes while the program computes.
//
// Source and target agree on words behind the region's data, which the target reads and writes
// itself.  Used by one thread at each end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/fabric_case.hpp"
#include "fabric/exposed_regions.hpp"

namespace hanare::bench {

enum class TargetState : uint32_t { kComputes, kSleeps, kPolls };
enum class Caller : uint32_t {
    kHanare,
    kKernel,  // kill() to who computes, a futex to who sleeps
};

struct SignalCase {
    const char* name;
    TargetState state;
    bool has_kernel;  // whether there is something to compare with
};
const std::vector<SignalCase>& signal_cases();

// The words, from kFabricSignalWords on in the region.
struct SignalWords {
    std::atomic<uint64_t> handled;  // how many signals
    std::atomic<uint64_t> time_ns;  // when the last one was (CLOCK_MONOTONIC)
    std::atomic<uint32_t> is_over;
    std::atomic<uint32_t> futex;
};
inline constexpr uint64_t kFabricSignalWords = kFabricDataBytes + 1024;

// The target's side: does what the case says until the source says that it is over.  `announce` is
// called with what the source has to know, as a line, when it has begun.
Result<void> be_signalled(fabric::ExposedRegions& regions, SignalWords& words, TargetState state,
                          Caller caller, const std::function<void(const std::string&)>& announce);

// The source's: microseconds from the call to the handler, of each signal.  `target` is the line
// from the target, `address` as for connect_fabric().
Result<std::vector<double>> signal_target(const std::string& address, const std::string& target,
                                          TargetState state, Caller caller, uint32_t signals);

// Microseconds of gets of 64 bytes while the target computes, which it does until this ends.
Result<std::vector<double>> get_from_busy(const std::string& address, const std::string& target,
                                          FabricEngine engine, uint32_t gets);

}  // namespace hanare::bench
