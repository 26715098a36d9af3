// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench numpy`: what is measured of NumPy's work on whole arrays, and how it is reported.
// No state; any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/record.hpp"

namespace hanare::bench {

// Whose memory the arrays are in.
inline constexpr const char* kNumpyPlain = "plain";       // NumPy's own, with all that it wants
inline constexpr const char* kNumpyMemmap = "memmap";     // a mapped file, below the limit
inline constexpr const char* kNumpyHanare = "hanare";     // far, below the same limit
inline constexpr const char* kNumpyFits = "hanare_fits";  // far, and all of it fits

// A case, and what a run of it on far memory may take at most; 0 where nothing is said.
struct NumpyCase {
    const char* name;
    const char* text;
    double memmap_floor;  // times that of a mapped file
    double memmap_goal;
    double plain_goal;  // times that of NumPy's own memory
};
const std::vector<NumpyCase>& numpy_cases();
std::string numpy_case_names();

struct NumpySample {
    int round = 0;
    std::string case_name;
    std::string system;
    std::string failure{};  // "" for one that ended well
    double seconds = 0;
    double flush_seconds = 0;   // for what it left in memory
    double import_seconds = 0;  // of the package, after NumPy
    uint64_t digest = 0;
};

// What the last line of a run says; none if that is nothing of the kind.
std::optional<NumpySample> parse_numpy_sample(const std::string& output);

// Times, medians, and next to them the ratios, of runs of the same round.
std::string numpy_table(const std::vector<NumpySample>& samples);
// What holds for the package and not for a case.
std::string numpy_summary(const std::vector<NumpySample>& samples);
std::vector<Record> numpy_records(const std::vector<NumpySample>& samples,
                                  const nlohmann::json& params);
// Runs whose result is another than that of a plain run, or, without one, than the first one's.
std::vector<std::string> numpy_differences(const std::vector<NumpySample>& samples);

}  // namespace hanare::bench
