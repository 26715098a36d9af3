// SPDX-License-Identifier: Apache-2.0
//
// Debian's hpcc (the HPC Challenge) as an application of `hanare bench space`.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "sys/temporary_folder.hpp"

namespace hanare::cli {

// Where it runs: with its input for two ranks, and its report going to standard output.  nullopt,
// and a line that says so: it is not installed.
Result<std::optional<sys::TemporaryFolder>> make_hpcc_folder();
std::string hpcc_case(const sys::TemporaryFolder& folder);

// A case and its seconds, where the line of the report has one.
std::optional<std::pair<std::string, double>> hpcc_time(const std::string& line);

}  // namespace hanare::cli
