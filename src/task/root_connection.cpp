// SPDX-License-Identifier: Apache-2.0
#include "task/root_connection.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "sys/local_socket.hpp"
#include "task/request.hpp"

namespace hanare::task {

namespace {

// It has little of the processors while many ranks before this one wait busily.
constexpr int kReadyMs = 300'000;
constexpr int kTriesMax = 100;
constexpr useconds_t kBetweenTriesUs = 2000;

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

// Out of the way of the numbers that the root gets them at.
sys::FileDescriptor moved(const sys::FileDescriptor& file) {
    return sys::FileDescriptor(fcntl(file.number(), F_DUPFD_CLOEXEC, kKeeperNumber + 1));
}

}  // namespace

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

Result<void> start_root(sys::FileDescriptor listener, sys::FileDescriptor keeper,
                        const std::string& root_program) {
    const sys::FileDescriptor listens = moved(listener);
    const sys::FileDescriptor keeps = keeper.is_open() ? moved(keeper) : sys::FileDescriptor();
    if (!listens.is_open() || (keeper.is_open() && !keeps.is_open())) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "starting the root of a space");
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, listens.number(), kListenerNumber);
    if (keeps.is_open()) {
        posix_spawn_file_actions_adddup2(&actions, keeps.number(), kKeeperNumber);
    }
    const int others = keeps.is_open() ? kKeeperNumber + 1 : kListenerNumber + 1;
    posix_spawn_file_actions_addclosefrom_np(&actions, others);
    std::string name = root_program;
    char begin[] = "begin";
    char* const arguments[] = {name.data(), begin, nullptr};
    pid_t between = 0;
    const int error =
        posix_spawn(&between, root_program.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return fail_errno(HANARE_STATUS_SYSTEM, error, "%.150s", root_program.c_str());
    // It ends as soon as it has begun the root.
    int status = 0;
    while (waitpid(between, &status, 0) < 0 && errno == EINTR) {
    }
    if (status == 0) return {};
    return fail(HANARE_STATUS_SYSTEM, "%.150s cannot begin", root_program.c_str());
}

namespace {

// A root that has just ended, or that another proxy is about to start, is tried again.
Result<sys::FileDescriptor> connect_once(const std::string& address,
                                         const std::string& root_program) {
    for (int tries = 0;; ++tries) {
        auto socket = sys::connect_local(address);
        const bool is_none = !socket && socket.error().os_errno == ECONNREFUSED;
        if (socket || (!is_none && socket.error().os_errno != EAGAIN) || tries == kTriesMax) {
            return socket;
        }
        if (is_none) {
            if (root_program.empty()) return socket;
            if (auto listener = sys::listen_local(address)) {
                HANARE_TRY(start_root(std::move(*listener), {}, root_program));
                continue;
            }
        }
        usleep(kBetweenTriesUs);
    }
}

}  // namespace

// One that ends before it has said anything has begun nothing.
Result<sys::FileDescriptor> connect_root(const std::string& address,
                                         const std::string& root_program) {
    for (int tries = 0;; ++tries) {
        HANARE_TRY_ASSIGN(sys::FileDescriptor socket, connect_once(address, root_program));
        const Result<Answer> ready = receive_answer(socket, kReadyMs);
        if (ready && ready->kind == Answer::Kind::kReady) return socket;
        if (ready || ready.error().status != HANARE_STATUS_NOT_FOUND || tries == kTriesMax) {
            return fail(HANARE_STATUS_TIMEOUT, "the root of the space does not answer");
        }
    }
}

}  // namespace hanare::task
