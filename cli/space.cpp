// SPDX-License-Identifier: Apache-2.0
//
// `hanare space`: programs in one address space.  This process becomes its root, or a proxy
// (space_root.cpp).
#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/run.hpp"
#include "cli/space_gdb.hpp"
#include "cli/space_ps.hpp"
#include "config/rules.hpp"
#include "sys/become_program.hpp"

namespace hanare::cli {
namespace {

namespace fs = std::filesystem;

constexpr config::Range kTasksAllowed(1, 1024);

struct SpaceFlags {
    std::optional<std::string> tasks;
    std::optional<std::string> space;
    bool verbose = false;
};

// Beside this program, as hanare-tools is.
Result<std::string> root_program() {
    std::error_code error;
    const fs::path own = fs::read_symlink("/proc/self/exe", error);
    const fs::path root = own.parent_path() / "hanare-space-root";
    if (!error && fs::exists(root, error)) return root.string();
    return fail(HANARE_STATUS_NOT_SUPPORTED, "%.200s is missing: built without a static C library",
                root.c_str());
}

Result<void> become_root(std::vector<std::string> arguments, const RunArguments& program) {
    HANARE_TRY_ASSIGN(const std::string root, root_program());
    arguments.insert(arguments.begin(), root);
    arguments.insert(arguments.end(), program.program.begin(), program.program.end());
    if (!program.ignores_file_size_signal) std::signal(SIGXFSZ, SIG_DFL);
    return std::unexpected(sys::become_program(arguments, 0));
}

Result<void> run(const SpaceFlags& flags, const RunArguments& arguments) {
    HANARE_TRY_ASSIGN(const uint64_t tasks, kTasksAllowed.parse("--tasks", *flags.tasks));
    if (arguments.program.empty()) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "hanare space run needs a program");
    }
    return become_root({"run", std::to_string(tasks)}, arguments);
}

Result<void> exec(const SpaceFlags& flags, const RunArguments& arguments) {
    if (arguments.program.empty()) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "hanare space exec needs a program");
    }
    if (flags.space) setenv("HANARE_SPACE", flags.space->c_str(), 1);
    if (flags.verbose) setenv("HANARE_SPACE_VERBOSE", "1", 1);
    return become_root({"exec"}, arguments);
}

Result<void> debug(const SpaceFlags&, const RunArguments& arguments) {
    if (arguments.program.empty()) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "hanare space gdb needs the process of a task");
    }
    const std::vector<std::string>& words = arguments.program;
    return std::unexpected(become_gdb(words.front(), {words.begin() + 1, words.end()}));
}

using Command = Result<void> (*)(const SpaceFlags&, const RunArguments&);

void set_command(CLI::App& app, const std::shared_ptr<SpaceFlags>& flags,
                 const RunArguments& arguments, Command command) {
    set_run(app, [flags, &arguments, command] {
        const Result<void> done = command(*flags, arguments);
        return done ? kExitSuccess : report(done.error());
    });
}

}  // namespace

void add_space(CLI::App& app, const RunArguments& arguments) {
    CLI::App* space = app.add_subcommand("space", "processes of one machine in one address space");
    space->require_subcommand(1);
    auto flags = std::make_shared<SpaceFlags>();
    CLI::App* run_app = space->add_subcommand(
        "run", "runs a program N times, each a process, all in the memory of one");
    run_app->add_option("-n,--tasks", flags->tasks, "how many, 1 to 1024")->required();
    run_app->footer(
        "hanare space run -n N [--] PROG [ARGS...]: PROG is position-independent, as programs of\n"
        "distributions are.  Task K finds HANARE_SPACE_TASK=K in its environment.  Exit status: "
        "that\n"
        "of the first task that failed.");
    set_command(*run_app, flags, arguments, run);
    CLI::App* exec_app = space->add_subcommand(
        "exec", "runs a program as a task of the space of the job that this process belongs to");
    exec_app->add_option("--space", flags->space,
                         "which (default $HANARE_SPACE, else the job of MPI's launcher, else the "
                         "process that starts this one)");
    exec_app->add_flag("--verbose", flags->verbose, "say why a program runs on its own");
    exec_app->footer(
        "mpirun -n N hanare space exec [OPTIONS] [--] PROG [ARGS...]: tasks of one job on one\n"
        "machine share a space.  Programs that can be no task run as themselves.  Exit status: "
        "the\n"
        "program's.");
    set_command(*exec_app, flags, arguments, exec);
    CLI::App* gdb_app = space->add_subcommand("gdb", "attaches gdb to a task, with its symbols");
    gdb_app->footer(
        "hanare space gdb PID [ARGS...]: the process of a task (hanare space ps), and what else "
        "gdb\n"
        "is to be told, such as -batch -ex 'thread apply all backtrace'.");
    set_command(*gdb_app, flags, arguments, debug);
    CLI::App* ps_app = space->add_subcommand("ps", "the spaces of this user, and their tasks");
    const auto as_json = std::make_shared<bool>(false);
    ps_app->add_flag("--json", *as_json, "print JSON");
    set_run(*ps_app, [as_json] {
        print_spaces(*as_json);
        return kExitSuccess;
    });
}

}  // namespace hanare::cli
