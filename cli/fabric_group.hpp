// SPDX-License-Identifier: Apache-2.0
//
// Those cases of `hanare bench fabric` in which a job takes part: barriers, and multicasts over a
// tree and by the root alone.  Each number of tasks is a job of its own below `hanare launch`.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/record.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {

inline constexpr const char* kBarrierCase = "barrier";
inline constexpr const char* kMulticastCase = "multicast";

struct GroupResults {
    std::string table;
    std::vector<bench::Record> records;
};
Result<GroupResults> measure_groups(const sys::Interrupt& interrupt, bool quick);

// What each task does; the first writes lines of numbers.
Result<void> run_group_task();

}  // namespace hanare::cli
