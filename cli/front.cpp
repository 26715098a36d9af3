// SPDX-License-Identifier: Apache-2.0
//
// The program `hanare`: it is `hanare run` where the command line is plainly that, and becomes
// hanare-tools, the whole command, for everything else, help and mistakes included.  Programs wait
// for it to start, so it parses by hand and has no more in it than it needs.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/outcome.hpp"
#include "cli/run.hpp"
#include "sys/unasked_processor.hpp"

namespace hanare::cli {
namespace {

namespace fs = std::filesystem;

struct RunCommand {
    RunFlags flags;
    config::Overrides overrides;
    RunArguments arguments;
};

// Words of the command line, one after the other.
class Words {
public:
    Words(int count, char** words) : next_(words), end_(words + count) {}

    bool at_end() const { return next_ == end_; }
    std::string_view take() { return *next_++; }
    std::string_view next() const { return at_end() ? "" : *next_; }
    std::vector<std::string> rest() const { return {next_, end_}; }

private:
    char** next_;
    char** end_;
};

bool set_switch(bool& flag) {
    if (flag) return false;  // once is enough
    return flag = true;
}

// An option of a pool, or --stats.
bool set_value(RunCommand& command, std::string_view name, std::string value) {
    if (name == "--stats") {
        if (command.flags.stats) return false;
        command.flags.stats = std::move(value);
        return true;
    }
    for (const config::OptionRow& row : config::option_rows()) {
        if (name != row.flag) continue;
        for (const config::Override& before : command.overrides) {
            if (before.option == row.id) return false;
        }
        command.overrides.push_back({row.id, std::move(value), "flag " + row.flag});
        return true;
    }
    return false;
}

bool take_option(RunCommand& command, Words& words) {
    const std::string_view word = words.take();
    if (word == "--verbose") return set_switch(command.flags.verbose);
    if (word == "--quiet") return set_switch(command.flags.quiet);
    if (word == "--progress") return set_switch(command.flags.progress);
    const size_t equal_sign = word.find('=');
    if (equal_sign != word.npos) {
        const std::string_view value = word.substr(equal_sign + 1);
        return !value.empty() && !value.starts_with('-') &&
               set_value(command, word.substr(0, equal_sign), std::string(value));
    }
    if (words.at_end() || words.next().starts_with('-')) return false;
    return set_value(command, word, std::string(words.take()));
}

// Nothing where somebody should be told what is wrong, or helped.
std::optional<RunCommand> understand(int argc, char** argv) {
    Words words(argc, argv);
    if (argc < 2) return std::nullopt;
    words.take();
    if (words.take() != "run") return std::nullopt;
    RunCommand command;
    while (words.next().starts_with('-') && words.next() != kRunArgumentsEnd) {
        if (!take_option(command, words)) return std::nullopt;
    }
    if (words.next() == kRunArgumentsEnd) words.take();
    if (words.at_end()) return std::nullopt;
    command.arguments.program = words.rest();
    return command;
}

// A launcher starts one for each task, and waits.  Returns where options have to be understood.
void become_space_proxy(int argc, char** argv) {
    const std::string_view words[] = {"space", "exec"};
    if (argc < 4 || argv[1] != words[0] || argv[2] != words[1] || *argv[3] == '-') return;
    std::error_code ignored;
    const fs::path directory = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    for (const fs::path& place : {directory / HANARE_TOOLS_DIRECTORY, directory}) {
        execv((place / "hanare-space-root").c_str(), argv + 1);
    }
}

// Returns only where that is not possible.
int become_tools(char** argv, bool ignores_file_size_signal = true) {
    if (!ignores_file_size_signal) std::signal(SIGXFSZ, SIG_DFL);
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

}  // namespace
}  // namespace hanare::cli

int main(int argc, char** argv) {
    namespace cli = hanare::cli;
    hanare::sys::ask_processor_again();
    cli::become_space_proxy(argc, argv);
    auto command = cli::understand(argc, argv);
    if (!command) return cli::become_tools(argv);
    return cli::run_command([&](bool ignores_file_size_signal) {
        command->arguments.ignores_file_size_signal = ignores_file_size_signal;
        const auto open_broker =
            [&](const hanare::config::Options&) -> hanare::Result<std::unique_ptr<cli::RunBroker>> {
            std::exit(cli::become_tools(argv, ignores_file_size_signal));
        };
        return cli::run_program(command->flags, command->overrides, command->arguments,
                                open_broker);
    });
}
