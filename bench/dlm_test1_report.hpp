// SPDX-License-Identifier: Apache-2.0
//
// What `hanare bench dlm-test1` says of its runs: the paper's Figs. 9 to 12 as tables, records, and
// whether the swaps are those of the paper's scheme.  No state; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/dlm_test1.hpp"
#include "bench/record.hpp"

namespace hanare::bench {

// One block size and local part.
struct Test1Case {
    double percent = 0;
    Test1Setup setup;
    Test1Run counts;  // of the last round
    std::vector<double> seconds[kTest1Passes];
    std::vector<double> relative[kTest1Passes];  // plain / hanare, same round
};

struct Test1Results {
    uint64_t bytes = 0;
    std::vector<double> percents;
    std::vector<Test1Case> cases;  // block by block, each with all percents
    std::vector<double> plain[kTest1Passes];
};

std::string test1_tables(const Test1Results& results);
std::vector<Record> test1_records(const Test1Results& results);

// INTERNAL unless three counts of the last round's swaps agree and are what the sizes give.
Result<void> check_test1_swaps(const Test1Case& which);

}  // namespace hanare::bench
