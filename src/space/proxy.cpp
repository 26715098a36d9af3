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

#include "space/request.hpp"
#include "space/signals.hpp"
#include "sys/foreground_program.hpp"
#include "sys/local_socket.hpp"

namespace hanare::space {

namespace {

constexpr int kPatienceMs = 30'000;
constexpr int kForever = -1;
constexpr int kTriesMax = 100;
constexpr useconds_t kBetweenTriesUs = 2000;
constexpr const char* kMpichRetries = "MPIR_CVAR_SHM_SYMHEAP_RETRY";
constexpr rlim_t kRootStackBytes = 8 << 20;

// Whose numbers of processes and files mean the same.
std::string namespaces() {
    std::string all;
    for (const char* const name :
         {"/proc/self/ns/mnt", "/proc/self/ns/pid", "/proc/self/ns/user"}) {
        char text[64];
        const ssize_t bytes = readlink(name, text, sizeof text);
        if (bytes > 0) all.append(text, static_cast<size_t>(bytes));
    }
    return all;
}

// Of a length that an address may have, whatever the space is called.
std::string address_of(const std::string& space) {
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const char each : space + '\n' + namespaces()) {
        hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3;
    }
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
    return "@hanare/" + std::to_string(geteuid()) + "/space-" + digits;
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
    // What is sent to this job's group, by the terminal too, is not for the root of others.
    setpgid(0, 0);
    // The kernel maps from another end where the stack has no limit.
    rlimit stack = {};
    if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur == RLIM_INFINITY) {
        stack.rlim_cur = kRootStackBytes;
        setrlimit(RLIMIT_STACK, &stack);
    }
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
    execl(root_program.c_str(), root_program.c_str(), "serve", nullptr);
    _exit(127);
}

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

// A root that has just ended, or that another proxy is about to start, is tried again.
Result<sys::FileDescriptor> connect_once(const std::string& space,
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

// One that ends before it has said anything has begun nothing.
Result<sys::FileDescriptor> connect_root(const std::string& space,
                                         const std::string& root_program) {
    for (int tries = 0;; ++tries) {
        HANARE_TRY_ASSIGN(sys::FileDescriptor socket, connect_once(space, root_program));
        const Result<Answer> ready = receive_answer(socket, kPatienceMs);
        if (ready && ready->kind == Answer::Kind::kReady) return socket;
        if (ready || ready.error().status != HANARE_STATUS_NOT_FOUND || tries == kTriesMax) {
            return fail(HANARE_STATUS_TIMEOUT, "the root of the space does not answer");
        }
    }
}

uint64_t ignored_signals() {
    uint64_t bits = 0;
    for (unsigned number = 1; number <= kSignals; ++number) {
        if (signal_action(number).handler == 1) bits |= uint64_t{1} << (number - 1);
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
    // The terminal's go to the task by themselves, which is in the same group.
    void pass_on() {
        signalfd_siginfo info = {};
        while (read(signals_.number(), &info, sizeof info) == sizeof info) {
            const int number = static_cast<int>(info.ssi_signo);
            if (!goes_to_all_by_itself(number, info.ssi_code)) kill(task_, number);
        }
    }
    [[noreturn]] void end() {
        const Result<Answer> answer = receive_answer(socket_, kPatienceMs);
        if (answer && answer->kind == Answer::Kind::kEnded) {
            sys::ForegroundProgram::end_as(answer->value);
        }
        end_without_root();
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
    // MPICH looks a hundred times for an address that a window may have in all ranks, each of which
    // counts on memory of its own; here there is none.
    if (std::getenv(kMpichRetries) == nullptr) {
        request->start.environment.push_back(std::string(kMpichRetries) + "=0");
    }
    const sigset_t passed = passed_signals();
    const BlockedSignals blocked(passed);
    request->signal_mask = bits_of(blocked.before());
    request->ignored_signals = ignored_signals();
    sys::FileDescriptor signals(signalfd(-1, &passed, SFD_CLOEXEC | SFD_NONBLOCK));
    sys::FileDescriptor directory(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!signals.is_open() || !directory.is_open()) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "the proxy of a task").error();
    }
    auto socket = connect_root(space, root_program);
    if (!socket) return socket.error();
    if (auto sent = send_request(*socket, *request, directory.number(), kPatienceMs); !sent) {
        return sent.error();
    }
    // From here on the program may have begun: it must not begin twice.
    const Result<Answer> answer = receive_answer(*socket, kForever);
    if (!answer) Standing::end_without_root();
    if (answer->kind != Answer::Kind::kBegun) {
        return fail(HANARE_STATUS_NOT_SUPPORTED, "%s", answer->text).error();
    }
    close_inherited(request->numbers);
    Standing(std::move(*socket), std::move(signals), answer->value).stay();
}

}  // namespace hanare::space
