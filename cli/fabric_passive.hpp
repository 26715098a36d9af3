// SPDX-License-Identifier: Apache-2.0
//
// The case `passive_target` of `hanare bench fabric`: gets while the target's program computes.
#pragma once

#include <string>
#include <vector>

#include "bench/record.hpp"
#include "cli/fabric_rounds.hpp"

namespace hanare::cli {

inline constexpr const char* kPassiveCase = "passive_target";

struct PassiveResults {
    std::string table;
    std::vector<bench::Record> records;
};
// `gets` by each engine; of the others, who wait for the target, a few.
Result<PassiveResults> measure_passive(const FabricSetting& setting, uint32_t gets, bool quick);

}  // namespace hanare::cli
