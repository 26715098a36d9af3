// SPDX-License-Identifier: Apache-2.0
#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "hints.hpp"

namespace hanare::driver {
namespace {

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// Of the handler below.
volatile sig_atomic_t child_id = 0;
volatile sig_atomic_t ended_by = 0;

void pass_on(int signal_number) {
    const int saved = errno;
    ended_by = signal_number;
    if (child_id > 0) kill(child_id, signal_number);
    errno = saved;
}

// As long as it lives, signals that end processes go to the child.  They are blocked around the
// fork, so that the handler knows the child and the child has none of it.
class Signals {
public:
    Signals() {
        sigset_t ending;
        sigemptyset(&ending);
        for (const int number : kEnding) sigaddset(&ending, number);
        sigprocmask(SIG_BLOCK, &ending, &mask_);
        struct sigaction action = {};
        action.sa_handler = pass_on;
        action.sa_flags = SA_RESTART;
        for (size_t i = 0; i < std::size(kEnding); ++i) {
            sigaction(kEnding[i], nullptr, &before_[i]);
            if (before_[i].sa_handler != SIG_IGN) sigaction(kEnding[i], &action, nullptr);
        }
    }
    ~Signals() {
        child_id = 0;
        restore();
    }
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    void restore() const {
        for (size_t i = 0; i < std::size(kEnding); ++i) sigaction(kEnding[i], &before_[i], nullptr);
        sigprocmask(SIG_SETMASK, &mask_, nullptr);
    }
    void child_is(pid_t child) const {
        child_id = child;
        sigprocmask(SIG_SETMASK, &mask_, nullptr);
    }

private:
    sigset_t mask_;
    std::array<struct sigaction, std::size(kEnding)> before_ = {};
};

std::vector<char*> pointers(const Words& command) {
    std::vector<char*> result;
    for (const std::string& word : command) result.push_back(const_cast<char*>(word.c_str()));
    result.push_back(nullptr);
    return result;
}

std::string cannot_run(const std::string& program, int error) {
    return "cannot run '" + program + "': " + std::strerror(error);
}

[[noreturn]] void be_child(const Words& command, int output, int errors, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(kFailed);
    if (output >= 0) dup2(output, STDOUT_FILENO);
    if (errors >= 0) dup2(errors, STDERR_FILENO);
    execvp(command[0].c_str(), pointers(command).data());
    say(cannot_run(command[0], errno));
    _exit(127);
}

pid_t start(const Words& command, int output, int errors, const Signals& signals) {
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child == 0) {
        signals.restore();
        be_child(command, output, errors, parent);
    }
    signals.child_is(child);
    if (child < 0) say(cannot_run(command[0], errno));
    return child;
}

std::optional<int> await(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) return std::nullopt;
    }
    return status;
}

// What comes from `from` until it ends, or the child does and what it wrote has come: somebody it
// started may live on and have the other end.
template <typename Take>
void listen(int from, pid_t child, Take take) {
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
    fcntl(from, F_SETFL, O_NONBLOCK);
    std::array<char, 16384> buffer;
    for (bool has_ended = false;;) {
        const ssize_t bytes = read(from, buffer.data(), buffer.size());
        if (bytes > 0) {
            take(std::string_view(buffer.data(), static_cast<size_t>(bytes)));
            continue;
        }
        if (bytes == 0 || (errno != EAGAIN && errno != EINTR) || has_ended) break;
        pollfd events[] = {{from, POLLIN, 0}, {pidfd, POLLIN, 0}};
        if (poll(events, pidfd < 0 ? 1 : 2, -1) > 0) has_ended = (events[1].revents & POLLIN) != 0;
    }
    if (pidfd >= 0) close(pidfd);
}

void pass_on_text(std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;
        text.remove_prefix(static_cast<size_t>(written));
    }
}

std::optional<int> run_watched(const Words& command) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return run(command);
    const Signals signals;
    const pid_t child = start(command, -1, ends[1], signals);
    close(ends[1]);
    Hints hints;
    if (child > 0) {
        listen(ends[0], child, [&](std::string_view text) {
            hints.hear(text);
            pass_on_text(text);
        });
    }
    close(ends[0]);
    if (child < 0) return std::nullopt;
    const std::optional<int> status = await(child);
    if (status.has_value() && *status != 0) hints.say();
    return status;
}

}  // namespace

std::string find_program(const std::string& word) {
    if (word.find('/') != std::string::npos) return access(word.c_str(), X_OK) == 0 ? word : "";
    const char* const path = std::getenv("PATH");
    std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
    while (!word.empty()) {
        const size_t colon = rest.find(':');
        const std::string folder(rest.substr(0, colon));
        const std::string file = (folder.empty() ? "." : folder) + "/" + word;
        if (access(file.c_str(), X_OK) == 0) return file;
        if (colon == std::string_view::npos) break;
        rest.remove_prefix(colon + 1);
    }
    return "";
}

int become(const Words& command) {
    execvp(command[0].c_str(), pointers(command).data());
    return fail(cannot_run(command[0], errno));
}

std::optional<int> run(const Words& command, Errors errors) {
    if (errors == Errors::kWatched) return run_watched(command);
    const int nowhere = errors == Errors::kHidden ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
    const Signals signals;
    const pid_t child = start(command, nowhere, nowhere, signals);
    if (nowhere >= 0) close(nowhere);
    return child > 0 ? await(child) : std::nullopt;
}

int end_as(int wait_status) {
    if (!WIFSIGNALED(wait_status)) return WEXITSTATUS(wait_status);
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(WTERMSIG(wait_status), SIG_DFL);
    raise(WTERMSIG(wait_status));
    return 128 + WTERMSIG(wait_status);
}

std::optional<std::string> output_of(const Words& command) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const Signals signals;
    const pid_t child = start(command, ends[1], nowhere, signals);
    close(ends[1]);
    close(nowhere);
    std::string text;
    if (child > 0) listen(ends[0], child, [&](std::string_view more) { text += more; });
    close(ends[0]);
    const std::optional<int> status = child > 0 ? await(child) : std::nullopt;
    return status == 0 ? std::optional(std::move(text)) : std::nullopt;
}

bool was_interrupted() { return ended_by != 0; }

}  // namespace hanare::driver
