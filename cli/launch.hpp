// SPDX-License-Identifier: Apache-2.0
//
// `hanare launch`: a program as several tasks that can find each other.  launch.cpp parts and
// checks the command line, launcher.hpp starts the tasks of this machine, and by ssh an agent on
// every other one (launch_agent.hpp), and stays until all have ended.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "fabric/secret.hpp"
#include "sys/child_programs.hpp"

namespace hanare::cli {

// The tasks of one machine that run here.
struct LocalTasks {
    std::vector<std::string> program;  // its name and arguments
    uint32_t first_rank = 0;
    uint32_t count = 1;
    uint32_t size = 1;       // of the job
    std::string rendezvous;  // HOST:PORT
    std::string host;        // this machine's address
    bool ignores_file_size_signal = false;
};

std::vector<std::string> whole_environment();
// Whether NAME=VALUE tells a task which one it is; ours are not for those that we start.
bool is_of_one_task(std::string_view entry);

// Starts them all; the one of rank 0 has our standard input, the others none.  NOT_FOUND,
// PERMISSION or INVALID_ARGUMENT with an `os_errno`: the program cannot be started.  Those that
// have begun are in `ranks`, also after an error.
Result<void> start_tasks(sys::ChildPrograms& children, const LocalTasks& tasks,
                         const fabric::Secret& secret, std::map<pid_t, uint32_t>& ranks);

// Prints one line and returns 126 or 127 for what exec refuses, else what report() does.
int report_start_failure(const std::string& program, const Error& error);

// As much longer do tasks live that were told to end.
inline constexpr int kGrace_ms = 5000;
// "rank 2", "rank 2 on host b".
std::string name_of_task(uint32_t rank, const std::string& host);
// The exit status of a shell whose program ended so.
int exit_status_of(int wait_status);

}  // namespace hanare::cli
