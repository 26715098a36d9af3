// SPDX-License-Identifier: Apache-2.0
//
// What `hanare demo` says at the end.  No state; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/device_probe.hpp"
#include "bench/matv.hpp"
#include "bench/record.hpp"

namespace hanare::bench {

// One run of one system.
struct DemoRun {
    std::string system;
    bool limited = false;  // inside a cgroup of the common size
    MatvTimes times;
    bool moved_known = false;
    uint64_t read_bytes = 0;  // moved by the device; for Hanare by its store
    uint64_t written_bytes = 0;
    uint64_t faults = 0;        // served by Hanare; for the others by the kernel
    uint64_t major_faults = 0;  // the kernel's that waited for the device
    uint64_t peak_resident_bytes = 0;
    uint64_t cgroup_peak_bytes = 0;  // page cache included; 0 outside a cgroup
};

// All verified runs of one system, at least one.
using DemoRuns = std::vector<DemoRun>;

// The run whose total time is the median (the faster of the middle two).
const DemoRun& median_run(const DemoRuns& runs);

// `device` is empty where it could not be measured.
std::string demo_table(const std::vector<DemoRuns>& systems,
                       const std::optional<DeviceBandwidth>& device);

// One sentence on what the numbers mean, whichever way they came out.
std::string demo_sentence(const std::vector<DemoRuns>& systems, double memory_ratio);

std::vector<Record> demo_records(const std::vector<DemoRuns>& systems,
                                 const std::optional<DeviceBandwidth>& device,
                                 const nlohmann::json& params);

}  // namespace hanare::bench
