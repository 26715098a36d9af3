// SPDX-License-Identifier: Apache-2.0
//
// The command line of an agent, as the shell of another machine gets it.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/launch_agent.hpp"
#include "cli/remote_shell.hpp"

namespace hanare::cli {

std::vector<std::string> options_of_hanare() {
    std::vector<std::string> entries;
    for (const std::string& entry : whole_environment()) {
        if (entry.starts_with("HANARE_") && !is_of_one_task(entry)) entries.push_back(entry);
    }
    return entries;
}

std::string agent_command(const std::string& path, const AgentPlan& plan) {
    std::vector<std::string> words = {path, kAgentName};
    const auto add = [&](const char* name, const std::string& value) {
        words.insert(words.end(), {name, value});
    };
    add("--rendezvous", plan.tasks.rendezvous);
    add("--size", std::to_string(plan.tasks.size));
    add("--first", std::to_string(plan.tasks.first_rank));
    add("--count", std::to_string(plan.tasks.count));
    add("--directory", plan.directory);
    for (const std::string& entry : plan.environment) add("--set", entry);
    words.emplace_back("--");
    words.insert(words.end(), plan.tasks.program.begin(), plan.tasks.program.end());
    return shell_command(words);
}

}  // namespace hanare::cli
