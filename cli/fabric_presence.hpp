// SPDX-License-Identifier: Apache-2.0
//
// Those cases of `hanare bench fabric` in which it matters what the target's program does
// (bench/fabric_signal.hpp).
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/record.hpp"
#include "cli/fabric_target_process.hpp"

namespace hanare::cli {

std::string presence_case_names();

struct PresenceResults {
    std::string table;  // empty: none of the cases
    std::vector<bench::Record> records;
};
// Of these names those that are such cases.
Result<PresenceResults> measure_presence(FabricTargetProcess& target, const std::string& address,
                                         const std::vector<std::string>& names, uint32_t signals);

}  // namespace hanare::cli
