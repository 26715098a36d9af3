// SPDX-License-Identifier: Apache-2.0
//
// `hanare run` as a subcommand of hanare-tools, for all that front.cpp leaves to it.
#include <algorithm>
#include <memory>
#include <string_view>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <span>

#include "cli/commands.hpp"
#include "cli/host_run.hpp"
#include "cli/launch_agent.hpp"
#include "cli/run.hpp"
#include "cli/server_broker.hpp"

namespace hanare::cli {
namespace {

// Subcommands whose command line ends with that of a program.
constexpr std::string_view kStarters[] = {"run", "launch", kAgentName};
// Of `hanare space`.
constexpr std::string_view kSpaceStarters[] = {"run", "exec", "gdb"};

bool is_among(std::span<const std::string_view> names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

// How many words the option takes; those that nobody knows are refused later, as ours.
int words_of_option(CLI::App& starter, const std::string& word) {
    const bool has_value = word.find('=') != std::string::npos;
    const CLI::Option* const option = has_value ? nullptr : starter.get_option_no_throw(word);
    return option != nullptr && option->get_expected_max() > 0 ? 2 : 1;
}

int run_beside(const RunFlags& flags, const HostFlags& hosts, config::Overrides overrides,
               const RunArguments& arguments) {
    const auto companion = HostRun::prepare(hosts, arguments, overrides);
    if (!companion) return report(companion.error());
    return run_program(flags, overrides, arguments, open_server_broker, companion->get());
}

}  // namespace

int part_arguments(CLI::App& app, int argc, char** argv, RunArguments& arguments) {
    if (argc < 2) return argc;
    const bool is_of_space =
        argc > 2 && argv[1] == std::string_view("space") && is_among(kSpaceStarters, argv[2]);
    if (!is_of_space && !is_among(kStarters, argv[1])) return argc;
    CLI::App& command = *app.get_subcommand(argv[1]);
    CLI::App& starter = is_of_space ? *command.get_subcommand(argv[2]) : command;
    int at = is_of_space ? 3 : 2;
    while (at < argc && *argv[at] == '-' && argv[at] != kRunArgumentsEnd) {
        at += words_of_option(starter, argv[at]);
    }
    if (at >= argc) return argc;
    arguments.program.assign(argv + at + (argv[at] == kRunArgumentsEnd ? 1 : 0), argv + argc);
    return at;
}

void add_run(CLI::App& app, const RunArguments& arguments) {
    CLI::App* const run_app =
        app.add_subcommand("run", "an unmodified program with its memory in a pool");
    auto flags = std::make_shared<RunFlags>();
    run_app->add_option("--stats", flags->stats, "write what the run cost to this file, as JSON");
    run_app->add_flag("--progress", flags->progress,
                      "show on standard error how it goes while the program runs");
    run_app->add_flag("--verbose", flags->verbose, "say more about what is done");
    run_app->add_flag("--quiet", flags->quiet, "do not say at the end what it cost");
    auto hosts = std::make_shared<HostFlags>();
    run_app->add_option("-f,--host-file", hosts->file,
                        "file of machines, `HOST MB` a line: the first is this one with the local "
                        "memory, on the others servers are started for the program");
    run_app->add_option("-n,--host-count", hosts->count,
                        "how many of them, this one among them (default all)");
    run_app->add_option("--rsh", hosts->rsh, "command that reaches them (default ssh)");
    run_app->add_option("--remote", hosts->remote,
                        "path of hanare over there (default where it is here)");
    const auto overrides = add_option_flags(*run_app);
    run_app->footer(
        "hanare run [OPTIONS] [--] PROG [ARGS...]: what follows PROG is the program's.\n"
        "Exit status: the program's; 126 and 127 as env(1); 2 for bad usage; 70 for a failure\n"
        "of Hanare.");
    set_run(*run_app, [flags, hosts, overrides, &arguments] {
        return run_beside(*flags, *hosts, *overrides, arguments);
    });
}

}  // namespace hanare::cli
