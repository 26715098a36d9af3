// SPDX-License-Identifier: Apache-2.0
//
// This user's processes with far memory, as `hanare ps` and `hanare top` show them.  Each tells of
// itself; of children that cannot, the others of their run do.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

namespace hanare::cli {

inline constexpr const char* kFigures[] = {"far_bytes",  "local_bytes",   "budget_bytes", "wait_ns",
                                           "read_bytes", "written_bytes", "hits",         "misses"};

// One line, of one process.
struct Process {
    std::string command;
    std::map<std::string, uint64_t> figures;  // all of kFigures
    bool tells_itself = false;
};

struct Found {
    std::map<int, Process> processes;  // by process id
    nlohmann::ordered_json runs = nlohmann::ordered_json::array();
    nlohmann::ordered_json answers = nlohmann::ordered_json::array();  // of processes, as they came
};

// What does not answer is told of on standard error, but for what has ended meanwhile.
Found ask_all_processes();

// For a terminal: without characters that would move its cursor.
std::string printable(std::string name);

}  // namespace hanare::cli
