// SPDX-License-Identifier: Apache-2.0
//
// The systems that `hanare bench fabric` is compared with and that are programs of their own
// (bench/compared): whether they are here, and one of them, which waits for what it is to measure.
// Used by the main thread.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/fabric_case.hpp"
#include "cli/worker_lines.hpp"
#include "sys/child.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {

inline constexpr const char* kRawTcp = "raw_tcp";

struct ComparedKind {
    const char* system;            // as in tables and records
    const char* group;             // another name for it, and for others
    const char* program;           // in bench/compared
    const char* headers_package;   // which it takes to build the program
    const char* launcher;          // what starts the two processes; or null
    const char* launcher_package;  // where that is from
};

struct ComparedChoice {
    bool has_raw = false;
    std::vector<const ComparedKind*> kinds;
    std::vector<std::string> notes;  // what was left out, and why; a line each
};
// Of the list of --compare.  INVALID_ARGUMENT: an unknown name, or nothing of what was named is
// here.
Result<ComparedChoice> choose_compared(const std::optional<std::string>& list);
std::string compared_names();

class ComparedProgram {
public:
    // Its target is in the network of that process, if there is one (fabric_network.hpp).
    static Result<ComparedProgram> start(const ComparedKind& kind, std::optional<pid_t> beside,
                                         const sys::Interrupt& interrupt);
    ComparedProgram(ComparedProgram&&) = default;
    // Its launcher clears away what it has made.
    ~ComparedProgram();

    const char* system() const { return kind_->system; }
    // Microseconds of a case's operation in a round.
    Result<double> run(const bench::FabricCase& which, uint64_t seed);
    // Of each of some gets, while the target computes for 200 ms.
    Result<std::vector<double>> get_from_busy(uint32_t gets);

private:
    ComparedProgram(const ComparedKind& kind, sys::Child child, WorkerLines lines)
        : kind_(&kind), child_(std::move(child)), lines_(std::move(lines)) {}
    Result<std::string> next_line();
    bool has_ended_within(int timeout_ms) const;

    const ComparedKind* kind_;
    sys::Child child_;
    WorkerLines lines_;
};

// What the child of start() does: becomes the program, or its launcher.
Error become_compared(const std::string& system, const std::optional<std::string>& beside);

}  // namespace hanare::cli
