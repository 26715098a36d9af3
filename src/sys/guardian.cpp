// SPDX-License-Identifier: Apache-2.0
#include "sys/guardian.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <utility>
#include <vector>

#include "sys/temporary_folder.hpp"
#include "sys/text_file.hpp"
#include "sys/zram_swap.hpp"

namespace hanare::sys {
namespace {

constexpr size_t kMessageBytesMax = 2 + PATH_MAX;  // '+' or '-', kind, path
constexpr int kTries = 3000;
constexpr int kPause_ms = 20;

// A killed parent's children are on their way out of the cgroup, and give back what they have in
// swap; that takes a while.
template <typename Attempt>
void try_for_a_while(Attempt attempt) {
    for (int tries = 0; attempt() != 0 && (errno == EBUSY || errno == ENOMEM) && tries < kTries;
         ++tries) {
        poll(nullptr, 0, kPause_ms);
    }
}

void undo(const std::string& promise) {
    const std::string path = promise.substr(1);
    switch (static_cast<Undo>(promise.front())) {
        case Undo::kCgroup: try_for_a_while([&] { return rmdir(path.c_str()); }); break;
        case Undo::kController: (void)write_text_file(path, "-memory"); break;
        case Undo::kSwapFile:
            try_for_a_while([&] { return swapoff(path.c_str()); });
            unlink(path.c_str());
            break;
        case Undo::kZramDevice:
            try_for_a_while([&] { return swapoff(path.c_str()); });
            (void)remove_zram_device(path);
            break;
        case Undo::kFile: unlink(path.c_str()); break;
        case Undo::kFolder:
            // What a killed parent has started may go on writing there for a moment.
            for (int tries = 0; !remove_folder(path) && tries < kTries; ++tries) {
                poll(nullptr, 0, kPause_ms);
            }
            break;
    }
}

// Keeps nothing of the parent's but the socket, which becomes `socket_number`.
void leave_parent(int socket, int socket_number) {
    setsid();
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    prctl(PR_SET_NAME, "hanare-guardian");
    const int null = open("/dev/null", O_RDWR);
    for (int number = 0; number <= STDERR_FILENO; ++number) {
        if (null < 0 || dup2(null, number) < 0) close(number);
    }
    dup2(socket, socket_number);
    closefrom(socket_number + 1);
}

[[noreturn]] void guard(int parent_socket) {
    constexpr int kSocket = STDERR_FILENO + 1;
    leave_parent(parent_socket, kSocket);
    std::vector<std::string> promises;
    std::vector<char> message(kMessageBytesMax);
    send(kSocket, "", 1, MSG_NOSIGNAL);  // on guard
    while (true) {
        const ssize_t got = recv(kSocket, message.data(), message.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 2) break;
        const std::string promise(message.data() + 1, static_cast<size_t>(got) - 1);
        if (message[0] == '+') {
            promises.push_back(promise);
        } else {
            std::erase(promises, promise);
        }
    }
    // What a cgroup's processes have in swap is given up with them, and not brought back.
    for (const bool cgroups : {true, false}) {
        for (const std::string& promise : promises) {
            if ((promise.front() == static_cast<char>(Undo::kCgroup)) == cgroups) undo(promise);
        }
    }
    _exit(0);
}

}  // namespace

Result<Guardian> Guardian::start() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "socketpair");
    }
    Guardian guardian;
    guardian.socket_ = FileDescriptor(above_standard(ends[0]));
    FileDescriptor other(above_standard(ends[1]));
    guardian.pid_ = fork();
    if (guardian.pid_ == 0) guard(other.number());
    if (guardian.pid_ < 0) return fail_errno(HANARE_STATUS_NO_MEMORY, errno, "fork");
    other.close();
    char ready = 0;
    while (recv(guardian.socket_.number(), &ready, sizeof ready, 0) < 0 && errno == EINTR) {
    }
    return guardian;
}

Guardian::Guardian(Guardian&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), socket_(std::move(other.socket_)) {}

Guardian& Guardian::operator=(Guardian&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(socket_, other.socket_);
    return *this;
}

Guardian::~Guardian() {
    if (pid_ <= 0) return;
    socket_.close();
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

void Guardian::tell(char what, Undo kind, const std::string& path) noexcept {
    const std::string message = std::string{what, static_cast<char>(kind)} + path;
    // A guardian that was killed is no reason to end.
    while (send(socket_.number(), message.data(), message.size(), MSG_NOSIGNAL) < 0 &&
           errno == EINTR) {
    }
}

}  // namespace hanare::sys
