// SPDX-License-Identifier: Apache-2.0
//
// Cases of `hanare bench fabric` that are operations, measured in rounds, in which all systems take
// turns: drifts of the machine meet all alike.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/fabric_case.hpp"
#include "cli/fabric_compared.hpp"
#include "cli/fabric_target_process.hpp"

namespace hanare::cli {

struct FabricSetting {
    FabricTargetProcess& target;
    std::string address;  // which that has told
    std::string network;
    std::vector<bench::FabricEngine> engines;
    bool has_raw = false;
    std::span<ComparedProgram> compared;
    int rounds = 1;
};

struct MeasuredCase {
    struct Ours {
        bench::FabricEngine engine;
        std::vector<double> times;      // microseconds, by round
        std::vector<double> processor;  // both processes', seconds for 10^9 bytes
    };
    struct Theirs {
        std::string system;
        std::vector<double> times;
    };
    const bench::FabricCase* which;
    std::vector<Ours> ours;
    std::vector<Theirs> theirs;
};

// In the order of the cases, to which it refers.
Result<std::vector<MeasuredCase>> measure_rounds(const FabricSetting& setting,
                                                 const std::vector<bench::FabricCase>& cases);

// By round, since both had the same machine then.
std::vector<double> ratios(const std::vector<double>& ours, const std::vector<double>& theirs);
std::vector<double> differences(const std::vector<double>& ours, const std::vector<double>& others);

}  // namespace hanare::cli
