// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench dsm`: the programs of bench/dsm (Midorikawa, Iizuka 1998, table 2), who runs them,
// what each run says, and how it is reported.  No state; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/record.hpp"

namespace hanare::bench {

struct DsmProgram {
    std::string name;                    // as --programs has it
    std::string program;                 // in bench/dsm: PROGRAM-FORM
    std::vector<std::string> arguments;  // of the paper's size, or what takes seconds today
    std::vector<std::string> quick;
    bool has_pvm = false;
};
const std::vector<DsmProgram>& dsm_programs();
// "jacobi,sor-z"; INVALID_ARGUMENT for what there is not, or is twice.
Result<std::vector<DsmProgram>> find_dsm_programs(const std::string& list);
std::string dsm_program_names();
inline constexpr const char* kQuickDsmPrograms = "ep,is-medium,water-288,sor-nz,jacobi";

struct DsmSystem {
    const char* name;
    const char* form;    // "tmk"
    const char* medium;  // "memory", "tcp"; "" for one process
};
inline constexpr DsmSystem kDsmSystems[] = {
    {"seq", "seq", ""},       {"hanare", "tmk", "memory"}, {"hanare_tcp", "tmk", "tcp"},
    {"mpi", "mpi", "memory"}, {"mpi_tcp", "mpi", "tcp"},   {"pvm", "pvm", "tcp"},
};

// A program's run by one system in a round.
struct DsmRun {
    std::string program;
    std::string system;
    int round = 0;
    std::string failure;                 // "" for one that ended well, verified
    std::map<std::string, double> said;  // seconds, messages, ...
    std::string digest;                  // "": it has none
};
// From the line that the program ends with; a failure where that is not of `processes`, or not
// verified.
DsmRun parse_dsm_run(const std::string& output, unsigned processes);

// A table for each program: medians, and times by those of MPI over the same medium, by rounds.
std::string dsm_tables(const std::vector<DsmRun>& runs);
std::vector<Record> dsm_records(const std::vector<DsmRun>& runs,
                                const std::vector<DsmProgram>& programs, bool is_quick,
                                unsigned processes);
// Where somebody's result is another than the sequential program's.
std::vector<std::string> dsm_differences(const std::vector<DsmRun>& runs);

}  // namespace hanare::bench
