// SPDX-License-Identifier: Apache-2.0
#include "sys/child.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "sys/file.hpp"

namespace hanare::sys {
namespace {

constexpr int kExecFailed = 127;

// Between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(const char* program, char* const* argv, int input_fd, int output_fd,
                         bool errors_too, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kExecFailed);  // it died before prctl
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const bool has_input = input_fd < 0 || dup2(input_fd, STDIN_FILENO) >= 0;
    const bool has_errors = !errors_too || dup2(output_fd, STDERR_FILENO) >= 0;
    if (has_input && has_errors && dup2(output_fd, STDOUT_FILENO) >= 0) execv(program, argv);
    _exit(kExecFailed);
}

}  // namespace

Result<Child> Child::start(const std::vector<std::string>& argv, Input input, Output output,
                           const char* program) {
    std::vector<char*> pointers;
    for (const std::string& argument : argv)
        pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno(HANARE_STATUS_SYSTEM, errno, "pipe");
    for (int& end : ends) end = above_standard(end);
    const pid_t parent = getpid();
    Child child;
    child.output_fd_ = ends[0];
    // A socket, because a pipe cannot be written to without SIGPIPE.
    int sockets[2] = {-1, -1};
    if (input == Input::kFromUs && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets)) {
        const int error = errno;
        close(ends[1]);
        return fail_errno(HANARE_STATUS_SYSTEM, error, "socketpair");
    }
    for (int& socket : sockets) socket = above_standard(socket);
    child.input_fd_ = sockets[0];
    child.pid_ = fork();
    if (child.pid_ == 0) {
        become(program, pointers.data(), sockets[1], ends[1], output == Output::kWithErrors,
               parent);
    }
    const int error = errno;
    close(ends[1]);
    if (sockets[1] >= 0) close(sockets[1]);
    if (child.pid_ < 0) return fail_errno(HANARE_STATUS_NO_MEMORY, error, "fork");
    return child;
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_fd_(std::exchange(other.output_fd_, -1)),
      input_fd_(std::exchange(other.input_fd_, -1)) {}

Child& Child::operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(output_fd_, other.output_fd_);
    std::swap(input_fd_, other.input_fd_);
    return *this;
}

Child::~Child() {
    kill();
    (void)wait();
    if (output_fd_ >= 0) close(output_fd_);
    end_input();
}

Result<void> Child::send(std::string_view text) {
    while (!text.empty()) {
        const ssize_t sent = ::send(input_fd_, text.data(), text.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return fail_errno(HANARE_STATUS_SYSTEM, errno, "telling a process of ours");
        text.remove_prefix(static_cast<size_t>(sent));
    }
    return {};
}

void Child::end_input() noexcept {
    if (input_fd_ >= 0) close(std::exchange(input_fd_, -1));
}

bool Child::has_ended() const noexcept {
    siginfo_t info = {};
    return pid_ <= 0 ||
           waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == pid_;
}

void Child::kill() noexcept {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
}

Result<int> Child::wait() {
    if (pid_ <= 0) return fail(HANARE_STATUS_NOT_FOUND, "no child to wait for");
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0) {
        if (errno != EINTR) return fail_errno(HANARE_STATUS_SYSTEM, errno, "waitpid");
    }
    pid_ = -1;
    return status;
}

std::string describe_wait_status(int wait_status) {
    if (WIFEXITED(wait_status)) return "exit status " + std::to_string(WEXITSTATUS(wait_status));
    const int signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
    return "killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
}

}  // namespace hanare::sys
