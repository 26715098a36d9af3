// SPDX-License-Identifier: Apache-2.0
//
// What one fault costs, by kind: the time of one access per block over a region whose blocks were
// all brought into the same state before, through the C API (DLM paper, section 5.1.2, measures
// the same way).  Used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace hanare::bench {

// What one round measures, in its order.
enum class FaultKind {
    kOpening,      // no fault: opening the pool and making the region
    kZeroFill,     // first write to a block that was never stored
    kStagedRead,   // read of a block that is in a frame but not mapped
    kUpgrade,      // first write to a block that is mapped for reading
    kStagedWrite,  // write to a block that is in a frame but not mapped
    kDemandRead,   // read of a block that is in the store only; includes the device
};
inline constexpr int kFaultKinds = 6;
const char* fault_kind_name(FaultKind kind);

struct FaultCostOptions {
    std::string store;
    std::string engine;
    uint64_t block_bytes = 0;
    uint32_t blocks = 0;  // faults per kind and round
    int rounds = 0;
};

// Microseconds, per fault where there are faults: [kind][round].
using FaultCosts = std::vector<std::vector<double>>;
// `stop` ends it between two rounds, with BUSY.
Result<FaultCosts> measure_fault_costs(const FaultCostOptions& options,
                                       const std::function<bool()>& stop);

}  // namespace hanare::bench
