// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench dlm`: the programs of bench/dlm, what is measured of each, and how it is reported,
// next to what the DLM paper (2009, sections 5.1.3 and 5.2) says.  No state; any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/record.hpp"

namespace hanare::bench {

// A program of one size.
struct DlmProgram {
    std::string name;
    std::string size;                    // the benchmark's own name of it, or what is in memory
    std::vector<std::string> sources;    // in bench/dlm
    std::vector<std::string> defines;    // of the size
    std::vector<std::string> arguments;  // at run time

    std::string title() const { return name + " " + size; }
};

// All that can be named, quick ones first.
const std::vector<DlmProgram>& dlm_programs();
// "himeno:L,cg:A"; INVALID_ARGUMENT for what there is not.
Result<std::vector<DlmProgram>> find_dlm_programs(const std::string& list);
std::string dlm_program_names();
const char* default_dlm_programs(bool is_quick);

// Who runs a program.
inline constexpr const char* kDlmPlain = "plain";    // with all the memory it wants
inline constexpr const char* kDlmHanare = "hanare";  // built by hanare-cc
inline constexpr const char* kDlmRun = "run";        // the plain one, under `hanare run`
inline constexpr const char* kDlmSwap = "swap";      // the plain one, in a cgroup, with swap
inline constexpr const char* kDlmZram = "zram";
inline constexpr const char* kDlmMmap = "mmap";  // its arrays in a mapped file, in a cgroup

struct DlmPoint {
    std::string program;
    std::string size;
    std::string system;
    std::string store;         // as --stores has it; "" for who has none
    double local_percent = 0;  // of the arrays; 0 for plain
    uint64_t block_bytes = 0;  // 0: auto, and for who has none
    int round = 0;

    bool operator==(const DlmPoint&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DlmPoint, program, size, system, store, local_percent,
                                   block_bytes, round)

// "auto", or a size to read.
std::string dlm_block_text(const DlmPoint& point);

struct DlmRun {
    DlmPoint point;
    std::string failure;  // "" for one that ended well, verified
    double seconds = 0;   // of the benchmark's own timing
    double whole_seconds = 0;
    double flush_seconds = -1;  // for what was left in memory; below 0: not known
    std::string digest;         // of its result
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DlmRun, point, failure, seconds, whole_seconds, flush_seconds,
                                   digest)

// What a program says in its last lines; none if it says nothing of the kind.
struct DlmResult {
    double seconds = 0;
    uint64_t bytes = 0;  // of its arrays
    bool is_verified = false;
    double flush_seconds = -1;  // below 0: it says nothing of that
    std::string digest;
};
std::optional<DlmResult> parse_dlm_result(const std::string& output);

// A table for each program: rows are local parts, columns systems; times by the plain one's of the
// same round, and with the final flush where that was measured.
std::string dlm_tables(const std::vector<DlmRun>& runs);
std::vector<Record> dlm_records(const std::vector<DlmRun>& runs);
// What failed, and why.
std::vector<std::string> dlm_failures(const std::vector<DlmRun>& runs);
// Where somebody's result is another than the plain program's.
std::vector<std::string> dlm_differences(const std::vector<DlmRun>& runs);

}  // namespace hanare::bench
