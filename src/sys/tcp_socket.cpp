// SPDX-License-Identifier: Apache-2.0
#include "sys/tcp_socket.hpp"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/sanitizers.hpp"
#include "sys/clock.hpp"
#include "sys/inject.hpp"
#include "sys/raw_call.hpp"

namespace hanare::sys {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr int kBacklog = 1024;
constexpr size_t kPartsMax = 16;

static_assert(sizeof(Part) == sizeof(iovec) &&
              offsetof(Part, address) == offsetof(iovec, iov_base) &&
              offsetof(Part, bytes) == offsetof(iovec, iov_len));

struct Address {
    sockaddr_storage name = {};
    socklen_t bytes = 0;
};

Result<Address> address_of(const std::string& host, uint16_t port) {
    Address address;
    auto* const four = reinterpret_cast<sockaddr_in*>(&address.name);
    auto* const six = reinterpret_cast<sockaddr_in6*>(&address.name);
    if (inet_pton(AF_INET, host.c_str(), &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        address.bytes = sizeof *four;
    } else if (inet_pton(AF_INET6, host.c_str(), &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(port);
        address.bytes = sizeof *six;
    } else {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "address %.100s: not a numeric IPv4 or IPv6 address", host.c_str());
    }
    return address;
}

Result<FileDescriptor> make_socket(const Address& address) {
    FileDescriptor made(above_standard(
        socket(address.name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP)));
    if (made.is_open()) return made;
    return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot create a socket");
}

void set_option(int socket, int level, int option, int value) noexcept {
    setsockopt(socket, level, option, &value, sizeof value);
}

// Without an answer to so many segments that were sent again, or questions: one may be lost.
constexpr int kUnansweredMin = 3;

// All of these are only requests to the kernel; a socket without them works as well.  Not
// TCP_USER_TIMEOUT: it also ends a connection to a peer that answers, but has no room for so long,
// being stopped, or computing while answers wait for it.
void set_options(int socket) noexcept {
    set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    // Five intervals without an answer: kSilenceMs.
    constexpr int kProbes = 4;
    constexpr int kIntervalS = kSilenceMs / 1000 / (kProbes + 1);
    set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kIntervalS);
    set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kIntervalS);
    set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

hanare_status status_of_connect(int os_errno) noexcept {
    switch (os_errno) {
        case ECONNREFUSED:
        case ECONNRESET:
        case EHOSTUNREACH:
        case ENETUNREACH: return HANARE_STATUS_PEER_LOST;
        case ETIMEDOUT: return HANARE_STATUS_TIMEOUT;
        default: return HANARE_STATUS_SYSTEM;
    }
}

msghdr message_of(std::span<const Part> parts, Part* copy) noexcept {
    const size_t count = std::min(parts.size(), kPartsMax);
    std::copy_n(parts.begin(), count, copy);
    msghdr message = {};
    message.msg_iov = reinterpret_cast<iovec*>(copy);
    message.msg_iovlen = count;
    return message;
}

// Cuts to half of the bytes, at least one.
void halve(msghdr& message) noexcept {
    size_t bytes = 0;
    for (size_t i = 0; i < message.msg_iovlen; ++i) bytes += message.msg_iov[i].iov_len;
    size_t left = std::max<size_t>(bytes / 2, 1);
    for (size_t i = 0; i < message.msg_iovlen; ++i) {
        message.msg_iov[i].iov_len = std::min(message.msg_iov[i].iov_len, left);
        left -= message.msg_iov[i].iov_len;
    }
}

// libc's functions are cancellation points and may be intercepted; ThreadSanitizer must see them.
ptrdiff_t call_kernel(inject::Call call, int socket, msghdr& message, int flags) noexcept {
    const bool sends = call == inject::Call::kSend;
#if defined(HANARE_TSAN)
    return sends ? sendmsg(socket, &message, flags) : recvmsg(socket, &message, flags);
#else
    return raw::syscall(sends ? SYS_sendmsg : SYS_recvmsg, socket, &message, flags);
#endif
}

ptrdiff_t transfer(inject::Call call, int socket, std::span<const Part> parts, int flags) noexcept {
    Part copy[kPartsMax];
    msghdr message = message_of(parts, copy);
    if (const int injected = inject::next_errno(call); injected == inject::kShort) {
        halve(message);
    } else if (injected != 0) {
        return -injected;
    }
    const int saved_errno = errno;
    ptrdiff_t moved = 0;
    do {
        moved = call_kernel(call, socket, message, flags);
    } while (moved < 0 && errno == EINTR);
    if (moved < 0) moved = errno == ENOBUFS || errno == ENOMEM ? -EAGAIN : -errno;
    errno = saved_errno;
    return moved;
}

}  // namespace

bool is_loopback(const std::string& host) {
    in_addr four = {};
    if (inet_pton(AF_INET, host.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
    in6_addr six = {};
    return inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

Result<FileDescriptor> listen_tcp(const std::string& host, uint16_t port) {
    HANARE_TRY_ASSIGN(const Address address, address_of(host, port));
    HANARE_TRY_ASSIGN(FileDescriptor listener, make_socket(address));
    set_option(listener.number(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind(listener.number(), reinterpret_cast<const sockaddr*>(&address.name), address.bytes) !=
            0 ||
        listen(listener.number(), kBacklog) != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot listen at %.100s port %u",
                          host.c_str(), port);
    }
    return listener;
}

Result<uint16_t> port_of(const FileDescriptor& socket) {
    Address address;
    address.bytes = sizeof address.name;
    if (getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address.name), &address.bytes) !=
        0) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot tell the port of a socket");
    }
    // The port lies at the same place in both.
    return ntohs(reinterpret_cast<const sockaddr_in*>(&address.name)->sin_port);
}

FileDescriptor accept_tcp(const FileDescriptor& listener) noexcept {
    FileDescriptor socket(
        above_standard(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
    if (socket.is_open()) set_options(socket.number());
    return socket;
}

Result<FileDescriptor> connect_tcp(const std::string& host, uint16_t port, int timeout_ms) {
    HANARE_TRY_ASSIGN(const Address address, address_of(host, port));
    HANARE_TRY_ASSIGN(FileDescriptor socket, make_socket(address));
    set_options(socket.number());
    int error = 0;
    if (connect(socket.number(), reinterpret_cast<const sockaddr*>(&address.name), address.bytes) !=
        0) {
        error = errno;
    }
    if (error == EINPROGRESS) {
        const Ready ready = wait_for_socket(socket.number(), {.to_write = true}, timeout_ms);
        socklen_t bytes = sizeof error;
        error = ETIMEDOUT;
        if (ready.to_write) {
            getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &bytes);
        }
    }
    if (error == 0) return socket;
    return fail_errno(status_of_connect(error), error, "cannot connect to %.100s port %u",
                      host.c_str(), port);
}

ptrdiff_t send_parts(int socket, std::span<const Part> parts) noexcept {
    return transfer(inject::Call::kSend, socket, parts, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ptrdiff_t receive_parts(int socket, std::span<const Part> parts) noexcept {
    return transfer(inject::Call::kReceive, socket, parts, MSG_DONTWAIT);
}

// A peer without room answers the questions for it, as it does all else.
Delivery delivery_to(int socket) noexcept {
    const int saved_errno = errno;
    tcp_info info = {};
    socklen_t bytes = sizeof info;
    int left = 0;
    Delivery delivery = Delivery::kDone;
    if (raw::syscall(SYS_getsockopt, socket, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
        raw::syscall(SYS_ioctl, socket, SIOCOUTQ, &left) == 0 && left != 0) {
        const bool was_asked =
            info.tcpi_retransmits >= kUnansweredMin || info.tcpi_probes >= kUnansweredMin;
        delivery = was_asked && info.tcpi_last_ack_recv >= kSilenceMs ? Delivery::kUnanswered
                                                                      : Delivery::kUnderWay;
    }
    errno = saved_errno;
    return delivery;
}

void shut_down(int socket) noexcept {
    const int saved_errno = errno;
    raw::syscall(SYS_shutdown, socket, SHUT_RDWR);
    errno = saved_errno;
}

Ready wait_for_socket(int socket, Ready wanted, int timeout_ms, int other) noexcept {
    const int saved_errno = errno;
    const auto events =
        static_cast<short>((wanted.to_read ? POLLIN : 0) | (wanted.to_write ? POLLOUT : 0));
    const uint64_t end_ns = now_ns() + static_cast<uint64_t>(std::max(timeout_ms, 0)) * kNsPerMs;
    pollfd states[2] = {{.fd = socket, .events = events, .revents = 0},
                        {.fd = other, .events = POLLIN, .revents = 0}};
    while (raw::syscall(SYS_poll, states, 2, timeout_ms) < 0 && errno == EINTR) {
        if (timeout_ms < 0) continue;
        const uint64_t now = now_ns();
        timeout_ms = now < end_ns ? static_cast<int>((end_ns - now) / kNsPerMs) + 1 : 0;
    }
    errno = saved_errno;
    const short seen = states[0].revents;
    const bool failed = (seen & (POLLERR | POLLHUP | POLLNVAL)) != 0;
    return {failed || (seen & POLLIN) != 0, failed || (seen & POLLOUT) != 0};
}

}  // namespace hanare::sys
