// SPDX-License-Identifier: Apache-2.0
#include "sys/program_start.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace hanare::sys {
namespace {

constexpr const char* kShell = "/bin/sh";

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

// Made by the parent, whose memory the child has until exec; it leaves nothing there but `error`.
struct Plan {
    const ProgramStart& start;
    std::vector<char*> arguments;
    std::vector<char*> environment;
    std::vector<char*> for_shell;  // empty if the program is not for a shell
    pid_t parent;
    volatile int error = 0;  // why there is no program
};

Plan plan_of(const ProgramStart& start) {
    Plan plan = {.start = start,
                 .arguments = pointers_to(start.arguments),
                 .environment = pointers_to(start.environment),
                 .for_shell = {},
                 .parent = getpid()};
    if (!start.is_text) return plan;
    plan.for_shell = {const_cast<char*>(kShell), const_cast<char*>(start.path.c_str())};
    plan.for_shell.insert(plan.for_shell.end(), plan.arguments.begin() + 1, plan.arguments.end());
    return plan;
}

[[noreturn]] void become(Plan& plan) {
    constexpr int kNobodySees = 127;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan.parent) _exit(kNobodySees);  // it died before prctl
    const ProgramStart& start = plan.start;
    if (start.prepare != nullptr) {
        if (const int error = start.prepare(start.context); error != 0) {
            plan.error = error;
            _exit(kNobodySees);
        }
    }
    start.signals.give_all();
    execve(start.path.c_str(), plan.arguments.data(), plan.environment.data());
    if (errno == ENOEXEC && !plan.for_shell.empty()) {
        execve(kShell, plan.for_shell.data(), plan.environment.data());
    }
    plan.error = errno;
    _exit(kNobodySees);
}

// Returns when the program has begun or could not.
[[gnu::noinline]] pid_t start_child(Plan& plan) {
    const pid_t child = vfork();
    if (child == 0) become(plan);
    return child;
}

}  // namespace

InheritedSignals InheritedSignals::take(const sigset_t& ours,
                                        bool ignores_file_size_signal) noexcept {
    InheritedSignals inherited;
    inherited.ignores_file_size_signal_ = ignores_file_size_signal;
    sigprocmask(SIG_BLOCK, &ours, &inherited.mask_);
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;  // ignored, children would leave no status
    sigaction(SIGCHLD, &action, &inherited.child_ended_);
    action.sa_handler = SIG_IGN;  // a closed standard error must not cost the programs
    sigaction(SIGPIPE, &action, &inherited.broken_pipe_);
    return inherited;
}

void InheritedSignals::give_back() const noexcept {
    sigaction(SIGCHLD, &child_ended_, nullptr);
    sigaction(SIGPIPE, &broken_pipe_, nullptr);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

void InheritedSignals::give_all() const noexcept {
    std::signal(SIGXFSZ, ignores_file_size_signal_ ? SIG_IGN : SIG_DFL);
    give_back();
}

Result<pid_t> start_program(const ProgramStart& start) {
    std::fflush(nullptr);
    Plan plan = plan_of(start);
    // None of our handlers may run in the child.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    const pid_t child = start_child(plan);
    const int fork_error = errno;
    sigprocmask(SIG_SETMASK, &before, nullptr);
    if (child < 0) return fail_errno(HANARE_STATUS_NO_MEMORY, fork_error, "fork");
    if (plan.error == 0) return child;
    wait_for_end(child);
    return fail_errno(HANARE_STATUS_INVALID_ARGUMENT, plan.error, "cannot run %.200s",
                      start.path.c_str());
}

void wait_for_end(pid_t child) noexcept {
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
}

}  // namespace hanare::sys
