// SPDX-License-Identifier: Apache-2.0
#include "space/proxy.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "space/signals.hpp"
#include "sys/foreground_program.hpp"
#include "sys/text_file.hpp"
#include "task/request.hpp"
#include "task/root_connection.hpp"

namespace hanare::space {

namespace {

constexpr int kPatienceMs = 30'000;
constexpr int kForever = -1;
constexpr int kSpacesMax = 64;  // of a job
constexpr const char* kMpichRetries = "MPIR_CVAR_SHM_SYMHEAP_RETRY";

// Blocked as long as this lives: for a descriptor, or until the program runs on its own.
class BlockedSignals {
public:
    explicit BlockedSignals(const sigset_t& signals) { sigprocmask(SIG_BLOCK, &signals, &before_); }
    ~BlockedSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;

    const sigset_t& before() const { return before_; }

private:
    sigset_t before_;
};

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
        : socket_(std::move(socket)),
          signals_(std::move(signals)),
          task_(task),
          is_of_our_group_(getpgid(task) == getpgrp()) {}

    // The task is no more either.
    [[noreturn]] static void end_without_root() {
        std::fprintf(stderr, "hanare: error: the root of the space has ended\n");
        _exit(kExitLost);
    }

    [[noreturn]] void stay() {
        for (;;) {
            pollfd entries[2] = {{socket_.number(), POLLIN, 0}, {signals_.number(), POLLIN, 0}};
            if (poll(entries, 2, kForever) < 0 && errno != EINTR) std::abort();
            if (entries[1].revents != 0) pass_on();
            if (entries[0].revents != 0) end();
        }
    }

private:
    // The terminal's go to the task by themselves if it is in the same group.
    void pass_on() {
        signalfd_siginfo info = {};
        while (read(signals_.number(), &info, sizeof info) == sizeof info) {
            const int number = static_cast<int>(info.ssi_signo);
            const bool has_it = is_of_our_group_ && goes_to_all_by_itself(number, info.ssi_code);
            if (!has_it) kill(task_, number);
        }
    }
    [[noreturn]] void end() {
        const Result<task::Answer> answer = task::receive_answer(socket_, kPatienceMs);
        if (answer && answer->kind == task::Answer::Kind::kEnded) {
            sys::ForegroundProgram::end_as(answer->value);
        }
        end_without_root();
    }

    static constexpr int kExitLost = 70;
    sys::FileDescriptor socket_;
    sys::FileDescriptor signals_;
    const pid_t task_;
    const bool is_of_our_group_;
};

void tell_full(int spaces) {
    std::fprintf(stderr,
                 "hanare: the memory of %s has all the mappings that vm.max_map_count allows: more "
                 "tasks are in another, and reach these as processes do\n",
                 spaces == 1 ? "this job's space" : "one more space of this job");
}

// Who reads from them waits for their end, which is the task's.
void close_inherited(const std::vector<int>& numbers) {
    for (const int number : numbers) {
        if (number != STDERR_FILENO) close(number);
    }
}

// And not whose children have nothing to do with each other: services, and orphans.
bool is_launcher(pid_t parent) {
    const auto name = sys::read_text_file("/proc/" + std::to_string(parent) + "/comm");
    return parent > 1 && (!name || *name != "systemd\n");
}

}  // namespace

std::string space_of_environment() {
    for (const char* const name : {"HANARE_SPACE", "PMIX_NAMESPACE", "PMI_KVS", "PMI_JOBID"}) {
        const char* const value = std::getenv(name);
        if (value != nullptr && *value != '\0') return value;
    }
    return "of-" + std::to_string(is_launcher(getppid()) ? getppid() : getpid());
}

Error run_by_proxy(const StartOfProgram& start, const std::string& space,
                   const std::string& root_program) {
    auto request = task::Request::of_this_process(start);
    if (!request) return request.error();
    // MPICH looks a hundred times for an address that a window may have in all ranks, each of which
    // counts on memory of its own; here there is none.
    if (std::getenv(kMpichRetries) == nullptr) {
        request->start.environment.push_back(std::string(kMpichRetries) + "=0");
    }
    const sigset_t passed = passed_signals();
    const BlockedSignals blocked(passed);
    sys::FileDescriptor signals(signalfd(-1, &passed, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals.is_open()) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "the proxy of a task").error();
    }
    for (int spaces = 1; spaces <= kSpacesMax; ++spaces) {
        const std::string name = spaces == 1 ? space : space + "+" + std::to_string(spaces);
        auto socket = task::connect_root(task::address_of(name), root_program);
        if (!socket) return socket.error();
        if (auto sent = task::send_request(*socket, *request, kPatienceMs); !sent) {
            return sent.error();
        }
        // From here on the program may have begun: it must not begin twice.
        const Result<task::Answer> answer = task::receive_answer(*socket, kForever);
        if (!answer) Standing::end_without_root();
        switch (answer->kind) {
            case task::Answer::Kind::kBegun:
                close_inherited(request->numbers);
                Standing(std::move(*socket), std::move(signals), answer->value).stay();
            case task::Answer::Kind::kFull:
                if (answer->value != 0) tell_full(spaces);
                break;
            default: return fail(HANARE_STATUS_NOT_SUPPORTED, "%s", answer->text).error();
        }
    }
    return fail(HANARE_STATUS_LIMIT, "%d spaces of this job are full", kSpacesMax).error();
}

}  // namespace hanare::space
