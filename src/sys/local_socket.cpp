// SPDX-License-Identifier: Apache-2.0
#include "sys/local_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "sys/clock.hpp"
#include "sys/text_file.hpp"

namespace hanare::sys {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr int kBacklog = 1024;  // tasks of a job may come all at once

struct Address {
    sockaddr_un name = {};
    socklen_t bytes = 0;
};

Result<Address> address_of(const std::string& text) {
    Address address;
    address.name.sun_family = AF_UNIX;
    if (text.empty() || text.size() >= sizeof address.name.sun_path) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "socket %.150s: the name is too long",
                    text.c_str());
    }
    std::memcpy(address.name.sun_path, text.data(), text.size());
    const bool has_file = text.front() != '@';
    if (!has_file) address.name.sun_path[0] = '\0';
    address.bytes =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size() + (has_file ? 1 : 0));
    return address;
}

FileDescriptor make_socket() {
    return FileDescriptor(
        above_standard(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
}

bool is_of(uid_t user, const FileDescriptor& socket) {
    ucred peer = {};
    socklen_t bytes = sizeof peer;
    return getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
           peer.uid == user;
}

}  // namespace

bool is_private_directory(const std::string& path) {
    struct stat status = {};
    return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
           status.st_uid == geteuid() && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

Result<void> make_private_directory(const std::string& path) {
    if (mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot make %.150s", path.c_str());
    }
    if (is_private_directory(path)) return {};
    return fail(HANARE_STATUS_SYSTEM, "%.150s is not a directory for this user only", path.c_str());
}

Result<FileDescriptor> listen_local(const std::string& address) {
    const bool has_file = !address.starts_with('@');
    // It gets its name when it listens, so that who finds nobody there knows that nobody will be.
    const std::string first = has_file ? address + ".new" : address;
    HANARE_TRY_ASSIGN(const Address name, address_of(first));
    FileDescriptor listener = make_socket();
    if (has_file) unlink(first.c_str());
    if (listener.is_open() &&
        bind(listener.number(), reinterpret_cast<const sockaddr*>(&name.name), name.bytes) == 0 &&
        listen(listener.number(), kBacklog) == 0 &&
        (!has_file || rename(first.c_str(), address.c_str()) == 0)) {
        return listener;
    }
    const int error = errno;
    if (has_file) unlink(first.c_str());
    return fail_errno(HANARE_STATUS_SYSTEM, error, "cannot listen at %.150s", address.c_str());
}

FileDescriptor accept_local(const FileDescriptor& listener, LocalPeers peers) {
    FileDescriptor socket(
        above_standard(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
    const bool is_checked = peers == LocalPeers::kThisUser && socket.is_open();
    if (is_checked && !is_of(geteuid(), socket)) socket.close();
    return socket;
}

Result<FileDescriptor> connect_local(const std::string& address, uid_t user) {
    HANARE_TRY_ASSIGN(const Address name, address_of(address));
    FileDescriptor socket = make_socket();
    if (!socket.is_open() ||
        connect(socket.number(), reinterpret_cast<const sockaddr*>(&name.name), name.bytes) != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot connect to %.150s", address.c_str());
    }
    if (is_of(user, socket)) return socket;
    return fail(HANARE_STATUS_SYSTEM, "%.150s is another user's", address.c_str());
}

Result<std::array<FileDescriptor, 2>> local_pair() {
    int numbers[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, numbers) != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot create a pair of sockets");
    }
    return std::array<FileDescriptor, 2>{FileDescriptor(above_standard(numbers[0])),
                                         FileDescriptor(above_standard(numbers[1]))};
}

std::vector<std::string> nameless_addresses(std::string_view prefix) {
    std::vector<std::string> found;
    const std::string text = read_text_file("/proc/net/unix").value_or("");
    const std::string wanted = " @" + std::string(prefix);
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = std::string_view(text).substr(begin, end - begin);
        begin = end + 1;
        const size_t at = line.find(wanted);
        // Of the sockets with a name those that listen have this flag.
        if (at != line.npos && line.find(" 00010000 ") < at)
            found.emplace_back(line.substr(at + 1));
    }
    return found;
}

Result<std::string> read_answer(const FileDescriptor& socket, size_t bytes_max, int timeout_ms) {
    const uint64_t end_ns = now_ns() + static_cast<uint64_t>(timeout_ms) * kNsPerMs;
    std::string text;
    for (uint64_t now = now_ns(); now < end_ns; now = now_ns()) {
        pollfd state = {.fd = socket.number(), .events = POLLIN, .revents = 0};
        poll(&state, 1, static_cast<int>((end_ns - now) / kNsPerMs) + 1);
        char part[4096];
        const ptrdiff_t got = receive_some(socket, part, sizeof part);
        if (got == 0) return text;
        if (got < 0 && errno != EAGAIN) {
            return fail_errno(HANARE_STATUS_SYSTEM, errno, "reading an answer");
        }
        if (got > 0 && text.size() < bytes_max) text.append(part, static_cast<size_t>(got));
    }
    return fail(HANARE_STATUS_SYSTEM, "no answer within %d ms", timeout_ms);
}

ptrdiff_t send_some(const FileDescriptor& socket, std::string_view text) noexcept {
    const ssize_t sent = send(socket.number(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    return sent;
}

void end_sending(const FileDescriptor& socket) noexcept { shutdown(socket.number(), SHUT_WR); }

bool is_abandoned(const FileDescriptor& socket) noexcept {
    pollfd state = {.fd = socket.number(), .events = 0, .revents = 0};
    return poll(&state, 1, 0) > 0 && (state.revents & POLLHUP) != 0;
}

ptrdiff_t receive_some(const FileDescriptor& socket, char* text, size_t bytes) noexcept {
    const ssize_t got = recv(socket.number(), text, bytes, 0);
    if (got < 0 && errno == EINTR) errno = EAGAIN;
    return got;
}

}  // namespace hanare::sys
