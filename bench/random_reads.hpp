// SPDX-License-Identifier: Apache-2.0
//
// Reads of single words at random places of an array (pattern.hpp), each timed and checked.
// Called by one thread, which starts and joins others.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "bench/pattern.hpp"

namespace hanare::bench {

struct RandomReads {
    const uint64_t* words = nullptr;
    PageRange pages;    // where the places lie
    uint32_t pass = 0;  // what they hold
    int threads = 1;
    uint64_t accesses_max = 0;  // all threads together
    double seconds_max = 0;
    uint64_t seed = 0;                        // the same places for the same seed
    const std::atomic<bool>* stop = nullptr;  // ends it early; may be null
};

struct AccessTimes {
    uint64_t count = 0;
    double mean_us = 0;  // as the accessing thread sees it
    double p50_us = 0;
    double p99_us = 0;
};

AccessTimes access_times(std::vector<uint32_t> times_ns);

// CORRUPT names a wrong word.
Result<AccessTimes> run_random_reads(const RandomReads& run);

}  // namespace hanare::bench
