// SPDX-License-Identifier: Apache-2.0
#include "sys/child_programs.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

namespace hanare::sys {
namespace {

constexpr int kTaken[] = {SIGHUP, SIGINT, SIGTERM};
constexpr int kOfTerminal[] = {SIGHUP, SIGINT, SIGQUIT};
constexpr const char* kShell = "/bin/sh";

// SIGCHLD, and what nobody has chosen to ignore: nohup, and shells for what they put behind.
sigset_t wanted_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (const int number : kTaken) {
        struct sigaction action = {};
        if (sigaction(number, nullptr, &action) != 0 || action.sa_handler != SIG_IGN) {
            sigaddset(&set, number);
        }
    }
    return set;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

void wait_for(pid_t pid) noexcept {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
}

}  // namespace

// Made by the parent, whose memory the child has until exec; it leaves nothing there but `error`.
struct ChildPrograms::Plan {
    const char* path;
    std::vector<char*> arguments;
    std::vector<char*> environment;
    std::vector<char*> for_shell;  // empty if the program is not for a shell
    int input;
    int inherited;
    bool ignores_terminal;
    const Inheritance& inheritance;
    pid_t parent;
    volatile int error = 0;  // why there is no program
};

Result<ChildPrograms> ChildPrograms::begin(bool ignores_file_size_signal) {
    ChildPrograms programs;
    const sigset_t wanted = wanted_signals();
    programs.signals_ =
        FileDescriptor(above_standard(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK)));
    if (!programs.signals_.is_open()) return fail_errno(HANARE_STATUS_SYSTEM, errno, "signalfd");
    Inheritance& inheritance = programs.inheritance_;
    inheritance.ignores_file_size_signal = ignores_file_size_signal;
    sigprocmask(SIG_BLOCK, &wanted, &inheritance.mask);
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;  // ignored, children would leave no status
    sigaction(SIGCHLD, &action, &inheritance.child_ended);
    action.sa_handler = SIG_IGN;  // a closed standard error must not cost the programs
    sigaction(SIGPIPE, &action, &inheritance.broken_pipe);
    getrlimit(RLIMIT_NOFILE, &inheritance.files);
    const rlimit most = {inheritance.files.rlim_max, inheritance.files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &most);
    return programs;
}

ChildPrograms::ChildPrograms(ChildPrograms&& other) noexcept
    : inheritance_(other.inheritance_),
      signals_(std::move(other.signals_)),
      running_(std::move(other.running_)) {}

ChildPrograms::~ChildPrograms() {
    if (!signals_.is_open()) return;
    for (const pid_t pid : running_) kill(pid, SIGKILL);
    for (const pid_t pid : running_) wait_for(pid);
    sigaction(SIGCHLD, &inheritance_.child_ended, nullptr);
    sigaction(SIGPIPE, &inheritance_.broken_pipe, nullptr);
    setrlimit(RLIMIT_NOFILE, &inheritance_.files);
    sigprocmask(SIG_SETMASK, &inheritance_.mask, nullptr);
}

void ChildPrograms::become(Plan& plan) {
    constexpr int kNobodySees = 127;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan.parent) _exit(kNobodySees);  // it died before prctl
    if (plan.input >= 0 && dup2(plan.input, STDIN_FILENO) < 0) {
        plan.error = errno;
        _exit(kNobodySees);
    }
    // Closed on exec here only: descriptors are the child's own already.
    if (plan.inherited >= 0) fcntl(plan.inherited, F_SETFD, 0);
    const Inheritance& inheritance = plan.inheritance;
    sigaction(SIGCHLD, &inheritance.child_ended, nullptr);
    sigaction(SIGPIPE, &inheritance.broken_pipe, nullptr);
    setrlimit(RLIMIT_NOFILE, &inheritance.files);
    std::signal(SIGXFSZ, inheritance.ignores_file_size_signal ? SIG_IGN : SIG_DFL);
    for (const int number : kOfTerminal) {
        if (plan.ignores_terminal) std::signal(number, SIG_IGN);
    }
    sigprocmask(SIG_SETMASK, &inheritance.mask, nullptr);
    execve(plan.path, plan.arguments.data(), plan.environment.data());
    if (errno == ENOEXEC && !plan.for_shell.empty()) {
        execve(kShell, plan.for_shell.data(), plan.environment.data());
    }
    plan.error = errno;
    _exit(kNobodySees);
}

// Returns when the program has begun or could not: no page is copied meanwhile.
[[gnu::noinline]] pid_t ChildPrograms::start_child(Plan& plan) {
    const pid_t child = vfork();
    if (child == 0) become(plan);
    return child;
}

Result<pid_t> ChildPrograms::start(const Launch& launch) {
    std::fflush(nullptr);
    Plan plan = {.path = launch.path.c_str(),
                 .arguments = pointers_to(launch.arguments),
                 .environment = pointers_to(launch.environment),
                 .for_shell = {},
                 .input = launch.input,
                 .inherited = launch.inherited,
                 .ignores_terminal = launch.ignores_terminal,
                 .inheritance = inheritance_,
                 .parent = getpid()};
    if (launch.is_text) {
        plan.for_shell = {const_cast<char*>(kShell), const_cast<char*>(plan.path)};
        plan.for_shell.insert(plan.for_shell.end(), plan.arguments.begin() + 1,
                              plan.arguments.end());
    }
    // None of our handlers may run in the child.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    const pid_t child = start_child(plan);
    const int fork_error = errno;
    sigprocmask(SIG_SETMASK, &before, nullptr);
    if (child < 0) return fail_errno(HANARE_STATUS_NO_MEMORY, fork_error, "fork");
    if (plan.error != 0) {
        wait_for(child);
        return fail_errno(HANARE_STATUS_INVALID_ARGUMENT, plan.error, "cannot run %.200s",
                          launch.path.c_str());
    }
    running_.push_back(child);
    return child;
}

std::optional<ChildPrograms::Signal> ChildPrograms::take_signal() {
    signalfd_siginfo info = {};
    while (read(signals_.number(), &info, sizeof info) == sizeof info) {
        const int number = static_cast<int>(info.ssi_signo);
        if (number == SIGCHLD) continue;
        // A hangup is sent to the leader of the session only.
        const bool is_hangup_of_ours = number == SIGHUP && getsid(0) == getpid();
        return Signal{number, info.ssi_code == SI_KERNEL && !is_hangup_of_ours};
    }
    return std::nullopt;
}

std::optional<ChildPrograms::End> ChildPrograms::take_end() {
    for (const pid_t pid : running_) {
        int status = 0;
        if (waitpid(pid, &status, WNOHANG) != pid) continue;
        std::erase(running_, pid);
        return End{pid, status};
    }
    return std::nullopt;
}

void ChildPrograms::send(pid_t pid, int number) const noexcept {
    if (std::ranges::find(running_, pid) != running_.end()) kill(pid, number);
}

}  // namespace hanare::sys
