// SPDX-License-Identifier: Apache-2.0
#include "sys/foreground_program.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace hanare::sys {
namespace {

// Besides SIGCHLD, which is ours.  SIGTSTP and its kind stop us as they stop the program.
constexpr int kPassedOn[] = {SIGHUP,  SIGINT,  SIGQUIT,  SIGTERM, SIGUSR1, SIGUSR2,
                             SIGCONT, SIGALRM, SIGWINCH, SIGXCPU, SIGPWR};

sigset_t our_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (const int number : kPassedOn) sigaddset(&set, number);
    return set;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

// Mask and dispositions that the program is to have.
struct Inherited {
    sigset_t mask;
    struct sigaction child_ended;
    struct sigaction broken_pipe;
    bool ignores_file_size_signal;
};

// From here on signals wait for their descriptor.
Inherited take_signals(const ForegroundProgram::Launch& launch) {
    Inherited inherited = {};
    const sigset_t ours = our_signals();
    sigprocmask(SIG_BLOCK, &ours, &inherited.mask);
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;  // ignored, children would leave no status
    sigaction(SIGCHLD, &action, &inherited.child_ended);
    action.sa_handler = SIG_IGN;  // a closed standard error must not cost the program's status
    sigaction(SIGPIPE, &action, &inherited.broken_pipe);
    inherited.ignores_file_size_signal = launch.ignores_file_size_signal;
    return inherited;
}

void give_back_signals(const Inherited& inherited) {
    sigaction(SIGCHLD, &inherited.child_ended, nullptr);
    sigaction(SIGPIPE, &inherited.broken_pipe, nullptr);
    std::signal(SIGXFSZ, inherited.ignores_file_size_signal ? SIG_IGN : SIG_DFL);
    sigprocmask(SIG_SETMASK, &inherited.mask, nullptr);
}

// What the child needs, made by the parent: until exec it has the parent's memory, in which it must
// leave nothing behind but `error`.
struct Plan {
    const char* path;
    std::vector<char*> arguments;
    std::vector<char*> environment;
    std::vector<char*> for_shell;  // empty if the program is not for a shell
    Inherited inherited;
    pid_t parent;
    volatile int error = 0;  // why there is no program
};

constexpr const char* kShell = "/bin/sh";

[[noreturn]] void become(Plan& plan) {
    constexpr int kNobodySees = 127;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan.parent) _exit(kNobodySees);  // it died before prctl
    give_back_signals(plan.inherited);
    execve(plan.path, plan.arguments.data(), plan.environment.data());
    if (errno == ENOEXEC && !plan.for_shell.empty()) {
        execve(kShell, plan.for_shell.data(), plan.environment.data());
    }
    plan.error = errno;
    _exit(kNobodySees);
}

// Returns when the program has begun or could not: no page is copied meanwhile.
[[gnu::noinline]] pid_t start_child(Plan& plan) {
    const pid_t child = vfork();
    if (child == 0) become(plan);
    return child;
}

Plan plan_of(const ForegroundProgram::Launch& launch, const Inherited& inherited) {
    Plan plan = {.path = launch.path.c_str(),
                 .arguments = pointers_to(launch.arguments),
                 .environment = pointers_to(launch.environment),
                 .for_shell = {},
                 .inherited = inherited,
                 .parent = getpid()};
    if (!launch.is_text) return plan;
    plan.for_shell = {const_cast<char*>(kShell), const_cast<char*>(plan.path)};
    plan.for_shell.insert(plan.for_shell.end(), plan.arguments.begin() + 1, plan.arguments.end());
    return plan;
}

}  // namespace

ProgramEnd program_end(int wait_status) {
    if (WIFEXITED(wait_status)) return {.is_signal = false, .number = WEXITSTATUS(wait_status)};
    return {.is_signal = true, .number = WTERMSIG(wait_status)};
}

Result<ForegroundProgram> ForegroundProgram::start(const Launch& launch) {
    const sigset_t ours = our_signals();
    ForegroundProgram program;
    program.signals_ =
        FileDescriptor(above_standard(signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK)));
    if (!program.signals_.is_open()) return fail_errno(HANARE_STATUS_SYSTEM, errno, "signalfd");
    const Inherited inherited = take_signals(launch);
    std::fflush(nullptr);
    Plan plan = plan_of(launch, inherited);
    // None of our handlers may run in the child.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    program.pid_ = start_child(plan);
    const int fork_error = errno;
    sigprocmask(SIG_SETMASK, &before, nullptr);
    if (program.pid_ < 0) {
        give_back_signals(inherited);
        return fail_errno(HANARE_STATUS_NO_MEMORY, fork_error, "fork");
    }
    if (plan.error != 0) {
        while (waitpid(program.pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
        program.pid_ = -1;
        give_back_signals(inherited);
        return fail_errno(HANARE_STATUS_INVALID_ARGUMENT, plan.error, "cannot run %.200s",
                          launch.path.c_str());
    }
    return program;
}

ForegroundProgram::ForegroundProgram(ForegroundProgram&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), signals_(std::move(other.signals_)) {}

ForegroundProgram::~ForegroundProgram() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

// What the terminal sends goes to the whole process group, and so to the program, too; but a
// hangup to the leader of the session only.
void ForegroundProgram::pass_on(int number, int code, pid_t sender) const {
    const bool is_from_terminal = code == SI_KERNEL;
    const bool is_hangup_of_ours = number == SIGHUP && getsid(0) == getpid();
    if ((is_from_terminal && !is_hangup_of_ours) || sender == pid_) return;
    kill(pid_, number);
}

std::optional<int> ForegroundProgram::handle_signals() {
    signalfd_siginfo info = {};
    while (read(signals_.number(), &info, sizeof info) == sizeof info) {
        const int number = static_cast<int>(info.ssi_signo);
        if (number != SIGCHLD) pass_on(number, info.ssi_code, static_cast<pid_t>(info.ssi_pid));
    }
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
    pid_ = -1;
    return status;
}

void ForegroundProgram::end_as(int wait_status) {
    std::fflush(nullptr);
    if (WIFEXITED(wait_status)) _exit(WEXITSTATUS(wait_status));
    const int number = WTERMSIG(wait_status);
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0);  // where cores go to a program the limit does not count
    std::signal(number, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    raise(number);
    constexpr int kAsShellsSay = 128;
    _exit(kAsShellsSay + number);  // the first process of a container
}

}  // namespace hanare::sys
