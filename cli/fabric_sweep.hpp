// SPDX-License-Identifier: Apache-2.0
//
// The case `sweep` of `hanare bench fabric`: puts of 4 bytes to 1 MiB over TCP, one after the other
// and eight at a time, next to sockets used by hand (the MBCF paper's Figs. 1 and 2).
#pragma once

#include <string>
#include <vector>

#include "bench/record.hpp"
#include "cli/fabric_rounds.hpp"

namespace hanare::cli {

inline constexpr const char* kSweepCase = "sweep";

struct SweepResults {
    std::string table;
    std::vector<bench::Record> records;
};
// Of the setting's systems only tcp and raw_tcp, which always takes part.  Quick: one round.
Result<SweepResults> measure_sweep(const FabricSetting& setting, bool quick);

}  // namespace hanare::cli
