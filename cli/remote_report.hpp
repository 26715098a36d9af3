// SPDX-License-Identifier: Apache-2.0
//
// What `hanare bench remote` says of its samples: tables, ratios by round, goals, records.
// No state; any thread.
#pragma once

#include <string>
#include <vector>

#include "bench/record.hpp"
#include "cli/remote_job.hpp"

namespace hanare::cli {

// Of one network, all of whose samples are given.
std::string remote_tables(const std::vector<RemoteSample>& samples);
// Of all networks.
std::string remote_goals(const std::vector<RemoteSample>& samples);
std::vector<bench::Record> remote_records(const std::vector<RemoteSample>& samples,
                                          const nlohmann::json& params);

}  // namespace hanare::cli
