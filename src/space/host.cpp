// SPDX-License-Identifier: Apache-2.0
#include "space/host.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "space/space.hpp"
#include "sys/clock.hpp"
#include "sys/descriptor_passing.hpp"
#include "sys/local_socket.hpp"
#include "sys/text_file.hpp"
#include "task/request.hpp"

namespace hanare::space {

namespace {

using task::Answer;
using task::Received;
using task::Request;

// The next task of a job, whose first may have ended, finds the space still there.
constexpr int kIdleMs = 300;
// A proxy that stops in the middle of what it says keeps the others waiting so long; one that says
// nothing is sent away.
constexpr int kPatienceMs = 5000;
constexpr rlim_t kStackBytes = 8 << 20;
constexpr uint64_t kNsPerMs = 1'000'000;

// With what they map later.
constexpr uint64_t kMappingsOfTask = 60;
constexpr uint64_t kMappingsOfRank = 450;
constexpr uint64_t kMappingsSpare = 500;  // of the root, and of tasks since the last count
constexpr size_t kCountEvery = 16;        // tasks

bool is_rank(const Request& request) {
    return std::ranges::any_of(request.start.environment, [](const std::string& variable) {
        return variable.starts_with("PMIX_RANK=") || variable.starts_with("PMI_RANK=");
    });
}

// Readable when it has ended; not open where there is no keeper, or the kernel is too old to say.
Result<sys::FileDescriptor> creator_of(const sys::FileDescriptor& keeper) {
    const int process = keeper.is_open() ? sys::peer_process(keeper.number()) : 0;
    if (process <= 0) return sys::FileDescriptor();
    sys::FileDescriptor creator(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
    if (!creator.is_open() && errno == ESRCH) {
        return fail(HANARE_STATUS_NOT_FOUND, "who has the space has ended");
    }
    return creator;
}

uint64_t own_mappings() {
    const auto maps = sys::read_text_file("/proc/self/maps");
    return maps ? static_cast<uint64_t>(std::ranges::count(*maps, '\n')) : 0;
}

// HANARE_SPACE_MAPPINGS, of who has started the root, or what the kernel allows.
uint64_t mappings_allowed() {
    constexpr uint64_t kDefault = 65530;
    const char* const asked = std::getenv("HANARE_SPACE_MAPPINGS");
    const auto allowed = sys::read_text_file("/proc/sys/vm/max_map_count");
    const uint64_t most = allowed ? std::strtoull(allowed->c_str(), nullptr, 10) : kDefault;
    return asked == nullptr ? most : std::min<uint64_t>(most, std::strtoull(asked, nullptr, 10));
}

class Host {
public:
    Host(const sys::FileDescriptor& listener, const sys::FileDescriptor& keeper,
         const sys::FileDescriptor& creator, Space space, sys::FileDescriptor signals)
        : listener_(listener),
          keeper_(keeper),
          creator_(creator),
          space_(std::move(space)),
          signals_(std::move(signals)) {}

    Result<void> stay() {
        for (;;) {
            std::vector<pollfd> entries = {{listener_.number(), POLLIN, 0},
                                           {signals_.number(), POLLIN, 0},
                                           {keeper_.number(), POLLRDHUP, 0},
                                           {creator_.number(), POLLIN, 0}};
            if (!accepts_) entries[0].fd = -1;
            for (const Client& client : clients_) {
                entries.push_back({client.is_killed ? -1 : client.socket.number(), POLLIN, 0});
            }
            for (const Arriving& each : arriving_) {
                entries.push_back({each.socket.number(), POLLIN, 0});
            }
            const bool may_end = clients_.empty() && arriving_.empty() && !keeper_.is_open();
            const bool looks_again = may_end || !accepts_ || !arriving_.empty() || !is_settled_;
            const uint64_t asked_ns = sys::now_ns();
            const int ready = poll(entries.data(), entries.size(), looks_again ? kIdleMs : -1);
            if (!is_settled_) is_settled_ = space_.settle();
            if (ready == 0) send_away_the_silent(asked_ns);
            if (ready == 0 && may_end) return {};
            if (ready == 0) accepts_ = true;
            if (ready < 0 && errno != EINTR) return fail_errno(HANARE_STATUS_SYSTEM, errno, "poll");
            if (ready <= 0) continue;
            if (entries[2].revents != 0 || entries[3].revents != 0) {
                end_all();
                return {};
            }
            // Who has gone, before others come at the end of the list.
            size_t at = 4;
            for (Client& client : clients_) {
                if (entries[at++].revents == 0) continue;
                kill(client.process, SIGKILL);
                client.is_killed = true;
            }
            receive(std::span(entries).subspan(at));
            send_away_the_silent(asked_ns);
            if (entries[1].revents != 0) reap();
            if (entries[0].revents != 0) accept();
        }
    }

private:
    struct Client {
        sys::FileDescriptor socket;
        pid_t process = 0;
        bool is_killed = false;
    };
    // A proxy that has said nothing yet.
    struct Arriving {
        sys::FileDescriptor socket;
        uint64_t until_ns;
    };

    void accept() {
        sys::FileDescriptor socket = sys::accept_local(listener_);
        if (!socket.is_open()) {
            // Until somebody has gone, or for a moment.
            accepts_ = errno != EMFILE && errno != ENFILE;
            return;
        }
        const Answer ready = {.kind = Answer::Kind::kReady, .value = 0, .text = {}};
        if (!task::send_answer(socket, ready, kPatienceMs)) return;
        arriving_.push_back({std::move(socket), sys::now_ns() + kPatienceMs * kNsPerMs});
    }

    // Those that had said nothing when they were asked, for too long by then.
    void send_away_the_silent(uint64_t asked_ns) {
        std::erase_if(arriving_,
                      [asked_ns](const Arriving& each) { return each.until_ns < asked_ns; });
    }

    // `entries` are those of arriving_.
    void receive(std::span<const pollfd> entries) {
        for (const pollfd& entry : entries) {
            if (entry.revents == 0) continue;
            const auto found = std::ranges::find_if(arriving_, [&entry](const Arriving& each) {
                return each.socket.number() == entry.fd;
            });
            if (found == arriving_.end()) continue;
            sys::FileDescriptor socket = std::move(found->socket);
            arriving_.erase(found);
            answer(std::move(socket));
        }
    }

    void answer(sys::FileDescriptor socket) {
        const Result<pid_t> process = begin(socket);
        Answer answer;
        if (process) {
            answer = {.kind = Answer::Kind::kBegun, .value = *process, .text = {}};
        } else if (process.error().status == HANARE_STATUS_FULL) {
            answer = {.kind = Answer::Kind::kFull, .value = was_full_ ? 0 : 1, .text = {}};
            was_full_ = true;
        } else {
            answer.value = process.error().status;
            std::snprintf(answer.text, sizeof answer.text, "%s", process.error().text);
        }
        const bool is_told = task::send_answer(socket, answer, kPatienceMs).has_value();
        if (!process) {
            is_settled_ = false;
            return;
        }
        if (!is_told) kill(*process, SIGKILL);
        clients_.push_back({std::move(socket), *process});
    }

    // What was received is closed here once the task has it: who reads from a pipe waits for its
    // end.
    Result<pid_t> begin(const sys::FileDescriptor& socket) {
        HANARE_TRY_ASSIGN(const Received received, task::receive_request(socket, kPatienceMs));
        pollfd gone = {socket.number(), POLLRDHUP, 0};
        if (poll(&gone, 1, 0) != 0) return fail(HANARE_STATUS_NOT_FOUND, "the proxy has gone");
        const Request& request = received.request;
        if (!has_room_for(request)) {
            if (clients_.empty()) {
                return fail(HANARE_STATUS_LIMIT,
                            "vm.max_map_count, or HANARE_SPACE_MAPPINGS, allows no task at all");
            }
            return fail(HANARE_STATUS_FULL, "vm.max_map_count allows no more mappings");
        }
        std::vector<int> descriptors;
        for (const sys::FileDescriptor& file : received.descriptors) {
            descriptors.push_back(file.number());
        }
        std::vector<int> room(descriptors.size());
        const Inheritance inherited = {.descriptors = descriptors,
                                       .numbers = request.numbers,
                                       .room = room,
                                       .directory = received.directory.number(),
                                       .umask = request.umask,
                                       .group = request.group,
                                       .ignored_signals = request.ignored_signals,
                                       .limits = request.limits,
                                       .processors = request.processors};
        HANARE_TRY_ASSIGN(const uint32_t task,
                          space_.spawn(request.start, request.signal_mask, &inherited));
        return space_.process_of(task);
    }

    // Ranks begin at about the same time, each with few mappings, and then have many.  To count
    // them all takes as long as a task's beginning.
    bool has_room_for(const Request& request) {
        const uint64_t expected =
            (clients_.size() + 1) * (is_rank(request) ? kMappingsOfRank : kMappingsOfTask);
        if (expected < mappings_max_ / 2) return true;
        if (clients_.size() >= counted_with_ + kCountEvery || clients_.size() < counted_with_) {
            counted_ = own_mappings();
            counted_with_ = clients_.size();
        }
        return std::max(expected, counted_) + kMappingsSpare <= mappings_max_;
    }

    void end_all() {
        for (const Client& client : clients_) kill(client.process, SIGKILL);
        while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
        }
    }

    void reap() {
        signalfd_siginfo info = {};
        while (read(signals_.number(), &info, sizeof info) == sizeof info) {
        }
        int status = 0;
        for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
            if (!space_.reap(ended)) continue;
            is_settled_ = false;
            const auto client = std::ranges::find_if(
                clients_, [ended](const Client& each) { return each.process == ended; });
            if (client == clients_.end()) continue;
            static_cast<void>(task::send_answer(
                client->socket, {.kind = Answer::Kind::kEnded, .value = status, .text = {}},
                kPatienceMs));
            clients_.erase(client);
            accepts_ = true;
        }
    }

    const sys::FileDescriptor& listener_;
    const sys::FileDescriptor& keeper_;
    // Its process; children of that may have the keeper's other end.
    const sys::FileDescriptor& creator_;
    Space space_;
    sys::FileDescriptor signals_;
    std::vector<Client> clients_;
    std::vector<Arriving> arriving_;
    bool accepts_ = true;
    bool is_settled_ = true;
    bool was_full_ = false;
    uint64_t counted_ = 0;     // mappings
    size_t counted_with_ = 0;  // so many tasks
    const uint64_t mappings_max_ = mappings_allowed();
};

}  // namespace

bool begin_host(const char* program) {
    const pid_t host = fork();
    if (host != 0) return host > 0;
    // What is sent to this job's group, by the terminal too, is not for the root of others.
    setpgid(0, 0);
    // The kernel maps from another end where the stack has no limit.
    rlimit stack = {};
    if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur == RLIM_INFINITY) {
        stack.rlim_cur = kStackBytes;
        setrlimit(RLIMIT_STACK, &stack);
    }
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing >= 0) {
        for (int number = 0; number <= STDERR_FILENO; ++number) dup2(nothing, number);
    }
    execl(program, program, "serve", nullptr);
    _exit(127);
}

Result<void> serve_proxies(const sys::FileDescriptor& listener, const sys::FileDescriptor& keeper) {
    sigset_t child_ends;
    sigemptyset(&child_ends);
    sigaddset(&child_ends, SIGCHLD);
    std::signal(SIGCHLD, SIG_DFL);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, nullptr);
    sys::FileDescriptor signals(signalfd(-1, &child_ends, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals.is_open()) return fail_errno(HANARE_STATUS_SYSTEM, errno, "signalfd");
    // One for each proxy, and twice those of the next task.
    rlimit limit = {};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    HANARE_TRY_ASSIGN(Space space, Space::create());
    HANARE_TRY_ASSIGN(const sys::FileDescriptor creator, creator_of(keeper));
    return Host(listener, keeper, creator, std::move(space), std::move(signals)).stay();
}

}  // namespace hanare::space
