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

// In the child.  `failure_fd` is told why there is no program; exec closes it.
[[noreturn]] void become(const ForegroundProgram::Launch& launch, const Inherited& inherited,
                         pid_t parent, int failure_fd) {
    constexpr int kNobodySees = 127;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kNobodySees);  // it died before prctl
    const std::vector<char*> arguments = pointers_to(launch.arguments);
    const std::vector<char*> environment = pointers_to(launch.environment);
    give_back_signals(inherited);
    execve(launch.path.c_str(), arguments.data(), environment.data());
    if (errno == ENOEXEC && launch.is_text) {
        std::vector<std::string> for_shell = {"/bin/sh", launch.path};
        for_shell.insert(for_shell.end(), launch.arguments.begin() + 1, launch.arguments.end());
        execve("/bin/sh", pointers_to(for_shell).data(), environment.data());
    }
    const int error = errno;
    [[maybe_unused]] const ssize_t told = write(failure_fd, &error, sizeof error);
    _exit(kNobodySees);
}

// 0 when exec succeeded, or the child died before it could.
int exec_error(int failure_fd) {
    int error = 0;
    ssize_t got = 0;
    while ((got = read(failure_fd, &error, sizeof error)) < 0 && errno == EINTR) {
    }
    return got == sizeof error ? error : 0;
}

}  // namespace

ProgramEnd program_end(int wait_status) {
    if (WIFEXITED(wait_status)) return {.is_signal = false, .number = WEXITSTATUS(wait_status)};
    return {.is_signal = true, .number = WTERMSIG(wait_status)};
}

Result<ForegroundProgram> ForegroundProgram::start(const Launch& launch) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno(HANARE_STATUS_SYSTEM, errno, "pipe");
    const FileDescriptor failure(above_standard(ends[0]));
    FileDescriptor report(above_standard(ends[1]));
    const sigset_t ours = our_signals();
    ForegroundProgram program;
    program.signals_ =
        FileDescriptor(above_standard(signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK)));
    if (!program.signals_.is_open()) return fail_errno(HANARE_STATUS_SYSTEM, errno, "signalfd");
    const Inherited inherited = take_signals(launch);
    const pid_t parent = getpid();
    std::fflush(nullptr);
    program.pid_ = fork();
    if (program.pid_ == 0) become(launch, inherited, parent, report.number());
    const int fork_error = errno;
    report.close();
    if (program.pid_ < 0) {
        give_back_signals(inherited);
        return fail_errno(HANARE_STATUS_NO_MEMORY, fork_error, "fork");
    }
    if (const int error = exec_error(failure.number()); error != 0) {
        while (waitpid(program.pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
        program.pid_ = -1;
        give_back_signals(inherited);
        return fail_errno(HANARE_STATUS_INVALID_ARGUMENT, error, "cannot run %.200s",
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
    if (WIFEXITED(wait_status)) std::exit(WEXITSTATUS(wait_status));
    std::fflush(nullptr);
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
