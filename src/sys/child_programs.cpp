// SPDX-License-Identifier: Apache-2.0
#include "sys/child_programs.hpp"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace hanare::sys {
namespace {

constexpr int kTaken[] = {SIGHUP, SIGINT, SIGTERM};
constexpr int kOfTerminal[] = {SIGHUP, SIGINT, SIGQUIT};

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

// What a program is to have besides its signals.
struct Preparation {
    int input;
    int inherited;
    bool ignores_terminal;
    struct rlimit files;
};

int prepare(const void* context) {
    const auto& preparation = *static_cast<const Preparation*>(context);
    if (preparation.input >= 0 && dup2(preparation.input, STDIN_FILENO) < 0) return errno;
    // Closed on exec here only: descriptors are the child's own already.
    if (preparation.inherited >= 0) fcntl(preparation.inherited, F_SETFD, 0);
    setrlimit(RLIMIT_NOFILE, &preparation.files);
    for (const int number : kOfTerminal) {
        if (preparation.ignores_terminal) std::signal(number, SIG_IGN);
    }
    return 0;
}

}  // namespace

Result<ChildPrograms> ChildPrograms::begin(bool ignores_file_size_signal) {
    ChildPrograms programs;
    const sigset_t wanted = wanted_signals();
    programs.signals_ =
        FileDescriptor(above_standard(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK)));
    if (!programs.signals_.is_open()) return fail_errno(HANARE_STATUS_SYSTEM, errno, "signalfd");
    programs.inherited_ = InheritedSignals::take(wanted, ignores_file_size_signal);
    getrlimit(RLIMIT_NOFILE, &programs.files_);
    const rlimit most = {programs.files_.rlim_max, programs.files_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &most);
    return programs;
}

ChildPrograms::ChildPrograms(ChildPrograms&& other) noexcept
    : inherited_(other.inherited_),
      files_(other.files_),
      signals_(std::move(other.signals_)),
      running_(std::move(other.running_)) {}

ChildPrograms::~ChildPrograms() {
    if (!signals_.is_open()) return;
    for (const pid_t pid : running_) kill(pid, SIGKILL);
    for (const pid_t pid : running_) wait_for_end(pid);
    setrlimit(RLIMIT_NOFILE, &files_);
    inherited_.give_back();
}

Result<pid_t> ChildPrograms::start(const Launch& launch) {
    const Preparation preparation = {.input = launch.input,
                                     .inherited = launch.inherited,
                                     .ignores_terminal = launch.ignores_terminal,
                                     .files = files_};
    HANARE_TRY_ASSIGN(const pid_t child, start_program({.path = launch.path,
                                                        .arguments = launch.arguments,
                                                        .environment = launch.environment,
                                                        .is_text = launch.is_text,
                                                        .signals = inherited_,
                                                        .prepare = prepare,
                                                        .context = &preparation}));
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
