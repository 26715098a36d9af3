// SPDX-License-Identifier: Apache-2.0
#include "space/proxy.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "space/request.hpp"
#include "sys/foreground_program.hpp"
#include "sys/local_socket.hpp"

namespace hanare::space {

namespace {

constexpr int kPatienceMs = 30'000;
constexpr int kForever = -1;
constexpr int kTriesMax = 100;
constexpr useconds_t kBetweenTriesUs = 2000;

std::string address_of(const std::string& space) {
    return "@hanare/" + std::to_string(geteuid()) + "/space-" + space;
}

// By a child in between, so that nobody waits for it; it listens from the beginning.
void start_root(sys::FileDescriptor listener, const std::string& root_program) {
    const pid_t between = fork();
    if (between > 0) {
        waitpid(between, nullptr, 0);
        return;
    }
    if (between < 0) return;
    if (fork() != 0) _exit(0);
    const int nothing = open("/dev/null", O_RDWR);
    constexpr int kListener = 3;
    if (nothing >= 0) {
        for (int number = 0; number < kListener; ++number) dup2(nothing, number);
    }
    if (listener.number() == kListener) {
        fcntl(kListener, F_SETFD, 0);
    } else {
        dup2(listener.number(), kListener);
    }
    close_range(kListener + 1, ~0U, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execl(root_program.c_str(), root_program.c_str(), "serve", nullptr);
    _exit(127);
}

// A root that has just ended, or that another proxy is about to start, is tried again.
Result<sys::FileDescriptor> connect_root(const std::string& space,
                                         const std::string& root_program) {
    const std::string address = address_of(space);
    for (int tries = 0;; ++tries) {
        auto socket = sys::connect_local(address);
        const bool is_none = !socket && socket.error().os_errno == ECONNREFUSED;
        if (socket || (!is_none && socket.error().os_errno != EAGAIN) || tries == kTriesMax) {
            return socket;
        }
        if (is_none) {
            if (auto listener = sys::listen_local(address)) {
                start_root(std::move(*listener), root_program);
                continue;
            }
        }
        usleep(kBetweenTriesUs);
    }
}

uint64_t bits_of(const sigset_t& set) {
    uint64_t bits = 0;
    std::memcpy(&bits, &set, sizeof bits);
    return bits;
}

uint64_t ignored_signals() {
    uint64_t bits = 0;
    for (int number = 1; number < NSIG; ++number) {
        struct sigaction action = {};
        if (sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) {
            bits |= uint64_t{1} << (number - 1);
        }
    }
    return bits;
}

// All but what stops and faults.
sigset_t passed_signals() {
    sigset_t set;
    sigfillset(&set);
    for (const int number : {SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU, SIGSEGV, SIGBUS, SIGILL, SIGFPE,
                             SIGTRAP, SIGABRT, SIGSYS}) {
        sigdelset(&set, number);
    }
    return set;
}

class Standing {
public:
    Standing(sys::FileDescriptor socket, sys::FileDescriptor signals, pid_t task)
        : socket_(std::move(socket)), signals_(std::move(signals)), task_(task) {}

    [[noreturn]] void stay() {
        for (;;) {
            pollfd entries[2] = {{socket_.number(), POLLIN, 0}, {signals_.number(), POLLIN, 0}};
            if (poll(entries, 2, kForever) < 0 && errno != EINTR) std::abort();
            if (entries[1].revents != 0) pass_on();
            if (entries[0].revents != 0) end();
        }
    }

private:
    // The terminal's go to the task by themselves, which is in the same group.
    void pass_on() {
        signalfd_siginfo info = {};
        while (read(signals_.number(), &info, sizeof info) == sizeof info) {
            if (info.ssi_code != SI_KERNEL) kill(task_, static_cast<int>(info.ssi_signo));
        }
    }
    [[noreturn]] void end() {
        const Result<Answer> answer = receive_answer(socket_, kPatienceMs);
        if (answer && answer->kind == Answer::Kind::kEnded) {
            sys::ForegroundProgram::end_as(answer->value);
        }
        // The root is no more, and so the task is not either.
        std::fprintf(stderr, "hanare: error: the root of the space has ended\n");
        _exit(kExitLost);
    }

    static constexpr int kExitLost = 70;
    sys::FileDescriptor socket_;
    sys::FileDescriptor signals_;
    const pid_t task_;
};

// Who reads from them waits for their end, which is the task's.
void close_inherited(const std::vector<int>& numbers) {
    for (const int number : numbers) {
        if (number != STDERR_FILENO) close(number);
    }
}

}  // namespace

std::string space_of_environment() {
    for (const char* const name : {"HANARE_SPACE", "PMIX_NAMESPACE", "PMI_KVS", "PMI_JOBID"}) {
        const char* const value = std::getenv(name);
        if (value != nullptr && *value != '\0') return value;
    }
    return "of-" + std::to_string(getppid());
}

Error run_by_proxy(const StartOfProgram& start, const std::string& space,
                   const std::string& root_program) {
    auto request = Request::of_this_process(start);
    if (!request) return request.error();
    const sigset_t passed = passed_signals();
    sigset_t before;
    sigprocmask(SIG_BLOCK, &passed, &before);
    request->signal_mask = bits_of(before);
    request->ignored_signals = ignored_signals();
    sys::FileDescriptor signals(signalfd(-1, &passed, SFD_CLOEXEC | SFD_NONBLOCK));
    sys::FileDescriptor directory(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    auto socket = connect_root(space, root_program);
    if (!socket) return socket.error();
    if (auto sent = send_request(*socket, *request, directory.number(), kPatienceMs); !sent) {
        return sent.error();
    }
    const Result<Answer> answer = receive_answer(*socket, kPatienceMs);
    if (!answer) return answer.error();
    if (answer->kind != Answer::Kind::kBegun) {
        sigprocmask(SIG_SETMASK, &before, nullptr);
        return fail(HANARE_STATUS_NOT_SUPPORTED, "%s", answer->text).error();
    }
    close_inherited(request->numbers);
    Standing(std::move(*socket), std::move(signals), answer->value).stay();
}

}  // namespace hanare::space
