// SPDX-License-Identifier: Apache-2.0
//
// The MPI jobs of `hanare bench space`: what is run, by which launcher, with which settings.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "base/result.hpp"

namespace hanare::cli {

struct SpaceBenchMpi {
    const char* name;
    const char* headers_package;
    const char* launcher;
    const char* launcher_package;
};
std::span<const SpaceBenchMpi> space_bench_mpis();

// What `hanare-bench-space-MPI` measures, and by which settings of MPI messages are to go.
struct SpaceBenchWay {
    const char* suffix;  // of a case's name
    const char* what;
};
// As MPI likes; all by a copy into shared memory and out of it; all by one copy from the sender.
std::span<const SpaceBenchWay> space_bench_ways();

inline constexpr const char* kSpaceBenchModes[] = {"plain", "space"};

// Cases are those of the program, or one application: "npb-is", or "hpcc@FOLDER", which runs there.
bool is_application(const std::string& cases);
// Its program: beside this one, or where the system has it.
std::filesystem::path space_bench_program(const SpaceBenchMpi& mpi, const std::string& cases);

// "MPI:MODE:RANKS:CASES" for `hanare bench space --job`.
std::string space_job_text(const SpaceBenchMpi& mpi, int mode, uint64_t ranks,
                           const std::string& cases);

// This process becomes the launcher of that.
Error become_space_job(const std::string& text);

}  // namespace hanare::cli
