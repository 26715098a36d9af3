// SPDX-License-Identifier: Apache-2.0
#include "sys/measured_program.hpp"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/units.hpp"
#include "sys/cgroup.hpp"
#include "sys/network_namespace.hpp"

namespace hanare::sys {
namespace {

constexpr int kNotStarted = 127;
constexpr uid_t kNobody = 65534;  // of every Linux, whatever its name is

[[noreturn]] void end_child(const char* what, const char* why) {
    dprintf(STDERR_FILENO, "%s: %s\n", what, why);
    _exit(kNotStarted);
}

void become_user(const UserIds& ids) {
    if (setgroups(0, nullptr) != 0 || setresgid(ids.group, ids.group, ids.group) != 0 ||
        setresuid(ids.user, ids.user, ids.user) != 0) {
        end_child("becoming another user", std::strerror(errno));
    }
}

std::vector<char*> environment_of(const MeasuredProgram::Launch& launch) {
    std::vector<char*> entries;
    for (const std::string& entry : launch.environment) {
        entries.push_back(const_cast<char*>(entry.c_str()));
    }
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const size_t name_bytes = strcspn(*entry, "=") + 1;
        bool is_ours = false;
        for (const std::string& set : launch.environment) {
            is_ours = is_ours || set.compare(0, name_bytes, *entry, name_bytes) == 0;
        }
        if (!is_ours) entries.push_back(*entry);
    }
    entries.push_back(nullptr);
    return entries;
}

// In the child of a process with one thread.
[[noreturn]] void become(const MeasuredProgram::Launch& launch, int errors, pid_t parent) {
    std::vector<char*> arguments;
    for (const std::string& argument : launch.arguments) {
        arguments.push_back(const_cast<char*>(argument.c_str()));
    }
    arguments.push_back(nullptr);
    const std::vector<char*> environment = environment_of(launch);
    if (dup2(launch.input, STDIN_FILENO) < 0 || dup2(launch.output, STDOUT_FILENO) < 0 ||
        dup2(errors, STDERR_FILENO) < 0) {
        _exit(kNotStarted);
    }
    if (!launch.cgroup.empty()) {
        if (const auto entered = enter_cgroup(launch.cgroup); !entered) {
            end_child("entering the cgroup", entered.error().text);
        }
    }
    if (launch.network_of != 0) {
        if (const auto entered = enter_network_of(launch.network_of); !entered) {
            end_child("entering a network", entered.error().text);
        }
    }
    if (launch.user) become_user(*launch.user);
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // becoming another user takes it away
    if (getppid() != parent) _exit(kNotStarted);
    std::signal(SIGXFSZ, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execve(launch.path.c_str(), arguments.data(), environment.data());
    end_child(launch.arguments.front().c_str(), std::strerror(errno));
}

}  // namespace

std::optional<UserIds> unprivileged_user() {
    if (geteuid() != 0) return std::nullopt;
    if (const passwd* const entry = getpwnam("nobody")) {
        return UserIds{entry->pw_uid, entry->pw_gid};
    }
    return UserIds{kNobody, kNobody};
}

Result<MeasuredProgram> MeasuredProgram::start(const Launch& launch) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno(HANARE_STATUS_SYSTEM, errno, "pipe");
    MeasuredProgram program;
    program.errors_ = FileDescriptor(above_standard(ends[0]));
    FileDescriptor errors(above_standard(ends[1]));
    const pid_t parent = getpid();
    std::fflush(nullptr);
    program.pid_ = fork();
    if (program.pid_ == 0) become(launch, errors.number(), parent);
    if (program.pid_ < 0) return fail_errno(HANARE_STATUS_NO_MEMORY, errno, "fork");
    return program;
}

MeasuredProgram::MeasuredProgram(MeasuredProgram&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), errors_(std::move(other.errors_)) {}

MeasuredProgram::~MeasuredProgram() {
    kill();
    (void)wait();
}

void MeasuredProgram::kill() noexcept {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
}

void MeasuredProgram::wait_for_last(std::chrono::milliseconds time) noexcept {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + time;
    char ignored[4096];
    while (true) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        if (left.count() <= 0) return;
        pollfd waited = {errors_.number(), POLLIN, 0};
        if (poll(&waited, 1, static_cast<int>(left.count())) <= 0) continue;
        const ssize_t got = read(errors_.number(), ignored, sizeof ignored);
        if (got == 0 || (got < 0 && errno != EINTR)) return;
    }
}

Result<MeasuredProgram::End> MeasuredProgram::wait() {
    if (pid_ <= 0) return fail(HANARE_STATUS_NOT_FOUND, "no program to wait for");
    End end;
    struct rusage usage = {};
    while (wait4(pid_, &end.status, 0, &usage) < 0) {
        if (errno != EINTR) return fail_errno(HANARE_STATUS_SYSTEM, errno, "wait4");
    }
    pid_ = -1;
    end.peak_resident_bytes = static_cast<uint64_t>(usage.ru_maxrss) * kKiB;
    return end;
}

}  // namespace hanare::sys
