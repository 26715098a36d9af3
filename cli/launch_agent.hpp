// SPDX-License-Identifier: Apache-2.0
//
// `hanare launch-task`: what ssh starts on another machine for `hanare launch`.  It reads the
// secret from its standard input, of which the rest is for the task of rank 0; goes to the
// rendezvous, starts its tasks, tells of their ends and passes on the signals of which it is told.
// When its connection is over it kills them.
#pragma once

#include <string>
#include <vector>

#include "cli/launch.hpp"

namespace hanare::cli {

inline constexpr const char* kAgentName = "launch-task";

struct AgentPlan {
    LocalTasks tasks;
    std::string directory;                 // in which the tasks begin, where it exists
    std::vector<std::string> environment;  // NAME=VALUE
};

// One command line for a shell over there, where hanare-tools is at `path`.  There is nothing
// secret in it.
std::string agent_command(const std::string& path, const AgentPlan& plan);
// Variables that set options of Hanare, for the environment of an agent.
std::vector<std::string> options_of_hanare();

// Returns the exit status.
int run_agent(AgentPlan plan);

}  // namespace hanare::cli
