// SPDX-License-Identifier: Apache-2.0
//
// The program `hanare`: parses the command line and runs one subcommand (commands.hpp).
#include <cstdio>
#include <exception>

#include "cli/commands.hpp"
#include "hanare/hanare.h"

namespace hanare::cli {
namespace {

int bad_usage(const char* text) {
    std::fprintf(stderr, "hanare: error: %s; see hanare --help\n", text);
    return kExitBadUsage;
}

int run(int argc, char** argv) {
    CLI::App app{
        "Memory beyond one process and one machine's DRAM, used with plain loads and stores."};
    app.name("hanare");
    app.set_version_flag("--version", std::string("hanare ") + hanare_version());
    try {
        app.parse(argc, argv);
    } catch (const CLI::RuntimeError& error) {
        return error.get_exit_code();
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

}  // namespace
}  // namespace hanare::cli

int main(int argc, char** argv) {
    try {
        return hanare::cli::run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "hanare: error: internal failure: %s; please report it\n",
                     error.what());
    } catch (...) {
        std::fputs("hanare: error: internal failure of unknown kind; please report it\n", stderr);
    }
    return hanare::cli::kExitInternalFailure;
}
