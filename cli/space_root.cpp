// SPDX-License-Identifier: Apache-2.0
//
// What `hanare space` becomes.  Static, because its memory is that of its tasks too, where nothing
// of it may depend on a libc that they have; and small, because a launcher starts one for each
// task.
//
//   hanare-space-root run COUNT NAME [ARGUMENT...]
//   hanare-space-root exec NAME [ARGUMENT...]
//   hanare-space-root begin             begins another one, and ends:
//   hanare-space-root serve             the root of what `exec` and the C API run; its descriptors
//                                       are those of task/root_connection.hpp
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "space/host.hpp"
#include "space/proxy.hpp"
#include "space/root.hpp"
#include "sys/foreground_program.hpp"
#include "sys/program_file.hpp"
#include "task/root_connection.hpp"

namespace {

using hanare::task::kKeeperNumber;
using hanare::task::kListenerNumber;
using hanare::task::StartOfProgram;

constexpr int kExitBadUsage = 2;
constexpr int kExitFailure = 70;
constexpr int kExitNotRunnable = 126;
constexpr int kExitNotFound = 127;

int report(const hanare::Error& error) {
    std::fprintf(stderr, "hanare: error: %s\n", error.text);
    return error.os_errno == ENOENT   ? kExitNotFound
           : error.os_errno == EACCES ? kExitNotRunnable
                                      : kExitFailure;
}

StartOfProgram start_of(const std::string& path, char** arguments) {
    StartOfProgram start;
    start.path = path;
    for (; *arguments != nullptr; ++arguments) start.arguments.emplace_back(*arguments);
    for (char** variable = environ; *variable != nullptr; ++variable) {
        start.environment.emplace_back(*variable);
    }
    return start;
}

// Absolute.
hanare::Result<std::string> path_of(const char* name) {
    HANARE_TRY_ASSIGN(const std::string found, hanare::sys::find_program(name));
    std::error_code ignored;
    return std::filesystem::absolute(found, ignored).string();
}

int run(char** arguments) {
    const auto count = static_cast<uint32_t>(std::strtoul(arguments[0], nullptr, 10));
    const auto path = path_of(arguments[1]);
    if (!path) return report(path.error());
    const auto status = hanare::space::run_tasks(start_of(*path, arguments + 1), count);
    if (!status) return report(status.error());
    hanare::sys::ForegroundProgram::end_as(*status);
}

// What can be no task runs as itself.
int exec(char** arguments) {
    const auto found = path_of(arguments[0]);
    if (!found) return report(found.error());
    const std::string& path = *found;
    std::error_code ignored;
    const std::string own = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
    const hanare::Error error = hanare::space::run_by_proxy(
        start_of(path, arguments), hanare::space::space_of_environment(), own);
    if (std::getenv("HANARE_SPACE_VERBOSE") != nullptr) {
        std::fprintf(stderr, "hanare: runs on its own: %s\n", error.text);
    }
    execv(path.c_str(), arguments);
    std::fprintf(stderr, "hanare: error: %s: %s\n", path.c_str(), std::strerror(errno));
    return kExitNotRunnable;
}

int serve() {
    const hanare::sys::FileDescriptor listener(kListenerNumber);
    fcntl(kListenerNumber, F_SETFD, FD_CLOEXEC);
    hanare::sys::FileDescriptor keeper;
    if (fcntl(kKeeperNumber, F_SETFD, FD_CLOEXEC) == 0) {
        keeper = hanare::sys::FileDescriptor(kKeeperNumber);
    }
    const auto served = hanare::space::serve_proxies(listener, keeper);
    return served ? 0 : kExitFailure;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "";
    if (what == "run" && argc > 3) return run(argv + 2);
    if (what == "exec" && argc > 2) return exec(argv + 2);
    if (what == "begin" && argc == 2) return hanare::space::begin_host(argv[0]) ? 0 : kExitFailure;
    if (what == "serve" && argc == 2) return serve();
    std::fprintf(stderr, "hanare: error: only hanare space may start this program\n");
    return kExitBadUsage;
}
