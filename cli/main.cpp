// SPDX-License-Identifier: Apache-2.0
//
// The program `hanare`: parses the command line and runs one subcommand (commands.hpp).
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.hpp"
#include "config/nearest.hpp"
#include "hanare/hanare.h"
#include "sys/file.hpp"

namespace hanare::cli {
namespace {

int bad_usage(std::string text) {
    // CLI11 words some of its errors on several lines.
    std::replace(text.begin(), text.end(), '\n', ' ');
    std::fprintf(stderr, "hanare: error: %s; see hanare --help\n", text.c_str());
    return kExitBadUsage;
}

// An argument that nothing expects, with the name it may have been meant to be.
int unknown_argument(const CLI::App& app) {
    const std::vector<CLI::App*> chosen = app.get_subcommands();
    const CLI::App& where = chosen.empty() ? app : *chosen.front();
    std::vector<std::string> names;
    for (const CLI::Option* option : where.get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    for (const CLI::App* subcommand : where.get_subcommands({})) {
        names.push_back(subcommand->get_name());
    }
    const std::vector<std::string_view> known(names.begin(), names.end());
    const std::vector<std::string> rest = app.remaining(true);
    const std::string argument = rest.empty() ? "" : rest.front();
    const std::string flag = argument.substr(0, argument.find('='));
    return bad_usage("unknown argument " + config::in_quotes(argument) +
                     config::suggestion(flag, known));
}

int run(int argc, char** argv) {
    CLI::App app{
        "Memory beyond one process and one machine's DRAM, used with plain loads and stores."};
    app.name("hanare");
    app.set_version_flag("--version", std::string("hanare ") + hanare_version());
    add_info(app);
    add_doctor(app);
    add_demo(app);
    add_bench(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::RuntimeError& error) {
        return error.get_exit_code();
    } catch (const CLI::ExtrasError&) {
        return unknown_argument(app);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        return bad_usage(error.what());
    }
    if (app.get_subcommands().empty()) {
        std::fputs(app.help().c_str(), stderr);
        return kExitBadUsage;
    }
    return kExitSuccess;
}

// Output that did not arrive is a failure, whatever the subcommand thinks.
int with_output_written(int status) {
    const bool failed = std::ferror(stdout) != 0;
    if (std::fflush(stdout) == 0 && !failed) return status;
    std::fprintf(stderr, "hanare: error: cannot write to standard output: %s\n",
                 std::strerror(errno));
    return kExitInternalFailure;
}

}  // namespace
}  // namespace hanare::cli

int main(int argc, char** argv) {
    // What is opened must not become a standard stream; nobody could be told of a failure.
    if (hanare::sys::open_missing_standard() != 0) return hanare::cli::kExitInternalFailure;
    // A file beyond `ulimit -f` is then an error like others, here and in what we start.
    std::signal(SIGXFSZ, SIG_IGN);
    try {
        return hanare::cli::with_output_written(hanare::cli::run(argc, argv));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "hanare: error: internal failure: %s; please report it\n",
                     error.what());
    } catch (...) {
        std::fputs("hanare: error: internal failure of unknown kind; please report it\n", stderr);
    }
    return hanare::cli::kExitInternalFailure;
}
