// SPDX-License-Identifier: Apache-2.0
//
// What `hanare` is besides `hanare run`: it becomes hanare-tools, the same command with everything
// in it, where the first argument is not "run".
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "cli/commands.hpp"

namespace hanare::cli {

namespace fs = std::filesystem;

// Returns only to run a program.
int become_responsible(int argc, char** argv) {
    if (argc > 1 && argv[1] == std::string_view("run")) return kExitSuccess;
    std::error_code ignored;
    const fs::path directory = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    fs::path tools;
    // Installed, and where both were built.
    for (const fs::path& place : {directory / HANARE_TOOLS_DIRECTORY, directory}) {
        tools = place / "hanare-tools";
        execv(tools.c_str(), argv);
        if (errno != ENOENT) break;
    }
    std::fprintf(stderr, "hanare: error: cannot run %s: %s; install Hanare again\n", tools.c_str(),
                 std::strerror(errno));
    return kExitInternalFailure;
}

void add_other_subcommands(CLI::App&) {}

}  // namespace hanare::cli
