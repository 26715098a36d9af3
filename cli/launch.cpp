// SPDX-License-Identifier: Apache-2.0
//
// `hanare launch` and `hanare launch-task` as subcommands: their command lines, and all that can be
// wrong with them.
#include "cli/launch.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/dsm_report.hpp"
#include "cli/launch_agent.hpp"
#include "cli/launcher.hpp"
#include "cli/remote_shell.hpp"
#include "cli/run.hpp"
#include "config/rules.hpp"
#include "job/environment.hpp"
#include "job/job.hpp"
#include "sys/host_address.hpp"
#include "sys/text_file.hpp"

namespace hanare::cli {
namespace {

struct LaunchFlags {
    std::optional<std::string> tasks;
    std::optional<std::string> hosts;
    std::optional<std::string> ssh;
    std::optional<std::string> listen;
    std::optional<std::string> agent;
    std::optional<std::string> dsm_report;
};

// Where hosts reach this machine.
Result<std::string> address_for_hosts(const LaunchFlags& flags) {
    if (flags.listen) {
        if (sys::is_unspecified_address(*flags.listen)) {
            return config::bad_value("--listen", *flags.listen, "is no address of a machine",
                                     "a numeric IPv4 or IPv6 address by which the hosts reach this "
                                     "machine");
        }
        if (sys::is_numeric_address(*flags.listen)) return *flags.listen;
        return config::bad_value("--listen", *flags.listen, "is not understood",
                                 "a numeric IPv4 or IPv6 address of this machine");
    }
    auto address = sys::outward_address();
    if (address) return address;
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "%.180s; --listen can name an address of it",
                address.error().text);
}

Result<void> plan_hosts(const LaunchFlags& flags, std::optional<uint32_t> tasks, LaunchPlan& plan) {
    auto text = sys::read_text_file(*flags.hosts);
    if (!text) return fail(HANARE_STATUS_INVALID_ARGUMENT, "--hosts: %.240s", text.error().text);
    HANARE_TRY_ASSIGN(const auto hosts, job::parse_host_file(*flags.hosts, *text));
    HANARE_TRY_ASSIGN(plan.hosts, job::place_tasks(hosts, tasks));
    plan.size = plan.hosts.back().first_rank + plan.hosts.back().count;
    HANARE_TRY_ASSIGN(plan.listen, address_for_hosts(flags));
    plan.ssh = words_of(flags.ssh.value_or("ssh"));
    if (plan.ssh.empty()) {
        return config::bad_value("--ssh", *flags.ssh, "is empty", "a command, such as ssh -p 2222");
    }
    HANARE_TRY_ASSIGN(plan.agent, own_path());
    if (flags.agent) plan.agent = *flags.agent;
    return {};
}

// Flags that mean nothing without hosts.
Result<void> refuse_without_hosts(const LaunchFlags& flags) {
    const std::pair<const char*, const std::optional<std::string>*> surplus[] = {
        {"--ssh", &flags.ssh}, {"--listen", &flags.listen}, {"--remote", &flags.agent}};
    for (const auto& [name, value] : surplus) {
        if (*value) return fail(HANARE_STATUS_INVALID_ARGUMENT, "%s needs --hosts", name);
    }
    return {};
}

Result<LaunchPlan> plan_of(const LaunchFlags& flags, const RunArguments& arguments) {
    if (arguments.program.empty()) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "hanare launch needs a program: hanare launch -n N [OPTIONS] [--] PROG "
                    "[ARGS...]; see hanare launch --help");
    }
    LaunchPlan plan;
    plan.program = arguments.program;
    plan.ignores_file_size_signal = arguments.ignores_file_size_signal;
    std::optional<uint32_t> tasks;
    if (flags.tasks) {
        HANARE_TRY_ASSIGN(tasks, job::parse_number("-n", *flags.tasks, 1, job::Job::kTasksMax));
    }
    if (flags.hosts) {
        HANARE_TRY(plan_hosts(flags, tasks, plan));
        return plan;
    }
    HANARE_TRY(refuse_without_hosts(flags));
    if (!tasks) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "hanare launch needs -n N, the number of tasks, or --hosts FILE");
    }
    plan.size = *tasks;
    plan.listen = "127.0.0.1";
    return plan;
}

int run_launch(const LaunchFlags& flags, const RunArguments& arguments) {
    const auto plan = plan_of(flags, arguments);
    if (!plan) return report(plan.error());
    if (!flags.dsm_report) return Launcher::run(*plan);
    // An older one is not taken for that of this run.
    std::error_code ignored;
    std::filesystem::remove(*flags.dsm_report, ignored);
    setenv("HANARE_DSM_REPORT", std::filesystem::absolute(*flags.dsm_report).c_str(), 1);
    const int status = Launcher::run(*plan);
    const auto text = read_dsm_report(*flags.dsm_report);
    if (text) {
        std::fputs(text->c_str(), stderr);
    } else {
        std::fprintf(stderr, "hanare: --dsm-report: %s\n", text.error().text);
    }
    return status;
}

struct AgentFlags {
    std::string rendezvous;
    std::string size;
    std::string first;
    std::string count;
    std::string directory;
    std::vector<std::string> environment;
};

Result<AgentPlan> agent_plan_of(const AgentFlags& flags, const RunArguments& arguments) {
    AgentPlan plan;
    plan.tasks.program = arguments.program;
    plan.tasks.ignores_file_size_signal = arguments.ignores_file_size_signal;
    plan.tasks.rendezvous = flags.rendezvous;
    plan.directory = flags.directory;
    plan.environment = flags.environment;
    constexpr uint32_t kMost = job::Job::kTasksMax;
    HANARE_TRY_ASSIGN(plan.tasks.size, job::parse_number("--size", flags.size, 1, kMost));
    HANARE_TRY_ASSIGN(plan.tasks.first_rank,
                      job::parse_number("--first", flags.first, 0, plan.tasks.size - 1));
    HANARE_TRY_ASSIGN(plan.tasks.count, job::parse_number("--count", flags.count, 1,
                                                          plan.tasks.size - plan.tasks.first_rank));
    if (!arguments.program.empty()) return plan;
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "hanare launch-task needs a program");
}

// For `hanare launch` only, and in no list.
void add_agent(CLI::App& app, const RunArguments& arguments) {
    CLI::App* const agent =
        app.add_subcommand(kAgentName, "what hanare launch starts on other machines")->group("");
    auto flags = std::make_shared<AgentFlags>();
    agent->add_option("--rendezvous", flags->rendezvous, "where hanare launch listens");
    agent->add_option("--size", flags->size, "how many tasks the job has");
    agent->add_option("--first", flags->first, "rank of the first task here");
    agent->add_option("--count", flags->count, "how many tasks are here");
    agent->add_option("--directory", flags->directory, "in which they begin");
    agent->add_option("--set", flags->environment, "NAME=VALUE, for their environment")
        ->allow_extra_args(false);
    set_run(*agent, [flags, &arguments] {
        auto plan = agent_plan_of(*flags, arguments);
        return plan ? run_agent(std::move(*plan)) : report(plan.error());
    });
}

}  // namespace

void add_launch(CLI::App& app, const RunArguments& arguments) {
    CLI::App* const launch =
        app.add_subcommand("launch", "a program as several tasks, here or on other machines");
    auto flags = std::make_shared<LaunchFlags>();
    launch->add_option("-n,--tasks", flags->tasks, "how many tasks");
    launch->add_option("--hosts", flags->hosts,
                       "a file of machines, `HOST [SLOTS]` a line, on which they run");
    launch->add_option("--ssh", flags->ssh, "command that reaches them (default ssh)");
    launch->add_option("--listen", flags->listen,
                       "this machine's address for them (default that of the default route)");
    launch->add_option("--remote", flags->agent,
                       "path of hanare over there (default where it is here)");
    launch->add_option("--dsm-report", flags->dsm_report,
                       "of programs that share memory: write HANARE_DSM_REPORT to this file, and "
                       "show it at the end");
    launch->footer(
        "hanare launch -n N [OPTIONS] [--] PROG [ARGS...]: what follows PROG is the program's.\n"
        "Rank 0 has our standard input. SIGINT, SIGTERM and SIGHUP go to all tasks.\n"
        "Exit status: 0 when all tasks end with 0, else that of the first which does not, 128 and\n"
        "the signal's number where a signal ends it; the others are ended then. 126 and 127 as\n"
        "env(1); 2 for bad usage; 70 for a failure of Hanare.");
    set_run(*launch, [flags, &arguments] { return run_launch(*flags, arguments); });
    add_agent(app, arguments);
}

}  // namespace hanare::cli
