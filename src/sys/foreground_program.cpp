// SPDX-License-Identifier: Apache-2.0
#include "sys/foreground_program.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "sys/program_start.hpp"

namespace hanare::sys {
namespace {

// Besides SIGCHLD, which is ours.  SIGTSTP and its kind stop us as they stop the program.
constexpr int kPassedOn[] = {SIGHUP,  SIGINT,  SIGQUIT,  SIGTERM, SIGUSR1, SIGUSR2,
                             SIGCONT, SIGALRM, SIGWINCH, SIGXCPU, SIGPWR};

}  // namespace

sigset_t forwarded_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (const int number : kPassedOn) sigaddset(&set, number);
    return set;
}

bool comes_to_program_too(int number, int code) {
    const bool is_own_timer = number == SIGALRM;  // which exec has kept
    return code == SI_KERNEL && !is_own_timer && !(number == SIGHUP && getsid(0) == getpid());
}

ProgramEnd program_end(int wait_status) {
    if (WIFEXITED(wait_status)) return {.is_signal = false, .number = WEXITSTATUS(wait_status)};
    return {.is_signal = true, .number = WTERMSIG(wait_status)};
}

Result<ForegroundProgram> ForegroundProgram::start(const Launch& launch) {
    const sigset_t ours = forwarded_signals();
    ForegroundProgram program;
    program.signals_ =
        FileDescriptor(above_standard(signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK)));
    if (!program.signals_.is_open()) return fail_errno(HANARE_STATUS_SYSTEM, errno, "signalfd");
    const auto inherited = InheritedSignals::take(ours, launch.ignores_file_size_signal);
    const auto child = start_program({.path = launch.path,
                                      .arguments = launch.arguments,
                                      .environment = launch.environment,
                                      .is_text = launch.is_text,
                                      .signals = inherited});
    if (!child) {
        inherited.give_all();
        return std::unexpected(child.error());
    }
    program.pid_ = *child;
    return program;
}

ForegroundProgram::ForegroundProgram(ForegroundProgram&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), signals_(std::move(other.signals_)) {}

ForegroundProgram::~ForegroundProgram() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    wait_for_end(pid_);
}

void ForegroundProgram::pass_on(int number, int code, pid_t sender) const {
    if (comes_to_program_too(number, code) || sender == pid_) return;
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
