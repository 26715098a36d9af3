// SPDX-License-Identifier: Apache-2.0
//
// Table and records of those cases of `hanare bench fabric` that are operations.
#pragma once

#include <string>
#include <vector>

#include "bench/record.hpp"
#include "cli/fabric_rounds.hpp"

namespace hanare::cli {

struct OperationResults {
    std::string table;  // empty: none of the cases
    std::vector<bench::Record> records;
};
Result<OperationResults> measure_operations(const FabricSetting& setting,
                                            const std::vector<bench::FabricCase>& cases);

}  // namespace hanare::cli
