// SPDX-License-Identifier: Apache-2.0
//
// Cases of arguments_sizes_test.cpp: sockets and waiting; and what the cases need.
#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "intercept/argument_cases.hpp"

namespace hanare::intercept::argument_cases {

namespace {

constexpr uint64_t kUserSignal2 = 1U << (SIGUSR2 - 1);

// clang-format off
std::vector<Case> socket_cases() {
    static Things& t = things();
    const auto name_16 = [] { t.name_bytes = 16; };
    const Bytes loopback = bytes_of(t.udp_name);
    const mmsghdr no_message = {};
    return {
        {"connect", SYS_connect, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.other_udp), p, 16}; }, loopback},
        {"bind", SYS_bind, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.udp), p, 16}; }, loopback},
        {"accept4", SYS_accept4, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.listener), p, word_of(&t.name_bytes), 0}; },
         {}, [] { t.connect_client(); t.name_bytes = 16; }},
        {"accept_length", SYS_accept, 2, Size::kExact,
         [](uint64_t p) { return Words{fd(t.listener), word_of(&t.scratch), p}; },
         bytes_of(uint32_t{40}), [] { t.connect_client(); }},
        {"getsockname", SYS_getsockname, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.udp), p, word_of(&t.name_bytes)}; }, {}, name_16},
        {"getsockname_length", SYS_getsockname, 2, Size::kExact,
         [](uint64_t p) { return Words{fd(t.udp), word_of(&t.scratch), p}; },
         bytes_of(uint32_t{40})},
        {"getpeername", SYS_getpeername, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.client), p, word_of(&t.name_bytes)}; },
         {}, [] { t.connect_client(); t.name_bytes = 16; }},
        {"socketpair", SYS_socketpair, 3, Size::kExact,
         [](uint64_t p) { return Words{AF_UNIX, SOCK_STREAM, 0, p}; }},
        {"setsockopt", SYS_setsockopt, 3, Size::kExact,
         [](uint64_t p) { return Words{fd(t.udp), SOL_SOCKET, SO_RCVTIMEO, p, 16}; }, Bytes(16)},
        {"getsockopt", SYS_getsockopt, 3, Size::kAtMost,
         [](uint64_t p) {
             return Words{fd(t.udp), SOL_SOCKET, SO_TYPE, p, word_of(&t.four)};
         }},
        {"sendto", SYS_sendto, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.udp), p, 9, 0, word_of(&t.udp_name), 16}; }},
        {"sendto_name", SYS_sendto, 4, Size::kExact,
         [](uint64_t p) { return Words{fd(t.udp), word_of(&t.scratch), 9, 0, p, 16}; },
         loopback},
        {"recvfrom", SYS_recvfrom, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.datagrams[0]), p, 100, 0, 0, 0}; },
         {}, [] { send(t.datagrams[1], "abcd", 4, 0); }},
        {"recvfrom_longer", SYS_recvfrom, 1, Size::kExact,  // its result is more than the size
         [](uint64_t p) { return Words{fd(t.datagrams[0]), p, 3, MSG_TRUNC, 0, 0}; },
         {}, [] { send(t.datagrams[1], "abcd", 4, 0); }},
        {"recvfrom_name", SYS_recvfrom, 4, Size::kExact,
         [](uint64_t p) {
             return Words{fd(t.udp), word_of(&t.scratch), 4, 0, p, word_of(&t.name_bytes)};
         },
         {}, [] { t.send_udp(); t.name_bytes = 16; }},
        {"sendmmsg", SYS_sendmmsg, 1, Size::kAtMost,
         [](uint64_t p) { return Words{fd(t.datagrams[1]), p, 1, MSG_DONTWAIT}; },
         bytes_of(no_message)},
        {"recvmmsg", SYS_recvmmsg, 1, Size::kAtMost,
         [](uint64_t p) { return Words{fd(t.datagrams[0]), p, 1, 0, 0}; },
         bytes_of(no_message), [] { send(t.datagrams[1], "abcd", 4, MSG_DONTWAIT); }},
    };
}

std::vector<Case> waiting_cases() {
    static Things& t = things();
    const Bytes two_polls = bytes_of(pollfd{t.pipe_ends[0], POLLIN, -1},
                                     pollfd{t.pipe_ends[0], POLLIN, -1});
    return {
        {"poll", SYS_poll, 0, Size::kExact, [](uint64_t p) { return Words{p, 2, 0}; }, two_polls},
        {"ppoll", SYS_ppoll, 0, Size::kExact,
         [](uint64_t p) { return Words{p, 2, word_of(&t.scratch), 0, 8}; }, two_polls,
         [] { t.scratch = {}; }},
        {"ppoll_mask", SYS_ppoll, 3, Size::kExact,
         [](uint64_t p) { return Words{0, 0, word_of(&t.scratch), p, 8}; }, Bytes(8),
         [] { t.scratch = {}; }},
        {"select", SYS_select, 1, Size::kExact,
         [](uint64_t p) { return Words{33, p, 0, 0, word_of(&t.scratch)}; },
         bytes_of(uint64_t{1} << t.timerfd), [] { t.scratch = {}; }},
        {"select_time", SYS_select, 4, Size::kExact,
         [](uint64_t p) { return Words{0, 0, 0, 0, p}; }, bytes_of(uint64_t{0}, uint64_t{1000})},
        {"pselect6_mask", SYS_pselect6, 5, Size::kExact,
         [](uint64_t p) { return Words{0, 0, 0, 0, word_of(&t.scratch), p}; }, Bytes(16),
         [] { t.scratch = {}; }},
        {"epoll_ctl", SYS_epoll_ctl, 3, Size::kExact,
         [](uint64_t p) { return Words{fd(t.epoll), EPOLL_CTL_MOD, fd(t.pipe_ends[0]), p}; },
         bytes_of(uint32_t{EPOLLIN}, uint64_t{0x1122334455667788})},
        {"epoll_wait", SYS_epoll_wait, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.epoll), p, 4, 0}; }},
        {"epoll_pwait2_time", SYS_epoll_pwait2, 3, Size::kExact,
         [](uint64_t p) { return Words{fd(t.epoll), word_of(&t.scratch), 4, p, 0, 8}; },
         Bytes(16)},
        {"pipe", SYS_pipe, 0, Size::kExact, [](uint64_t p) { return Words{p}; }},
        {"pipe2", SYS_pipe2, 0, Size::kExact, [](uint64_t p) { return Words{p, O_CLOEXEC}; }},
        {"signalfd4", SYS_signalfd4, 1, Size::kExact,
         [](uint64_t p) { return Words{kNone, p, 8, 0}; }, bytes_of(kUserSignal2)},
    };
}

// clang-format on

void bind_to_loopback(int socket, sockaddr_in& name) {
    socklen_t bytes = sizeof name;
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(socket, reinterpret_cast<sockaddr*>(&name), bytes);
    getsockname(socket, reinterpret_cast<sockaddr*>(&name), &bytes);
}

}  // namespace

Things::Things()
    : zero(open("/dev/zero", O_RDWR)),
      file(memfd_create("arguments", 0)),
      directory(open("/", O_RDONLY | O_DIRECTORY)),
      epoll(epoll_create1(0)),
      timerfd(timerfd_create(CLOCK_MONOTONIC, 0)),
      listener(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)),
      udp(socket(AF_INET, SOCK_DGRAM, 0)),
      other_udp(socket(AF_INET, SOCK_DGRAM, 0)),
      terminal(open("/dev/ptmx", O_RDWR | O_NOCTTY)),
      pidfd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0))) {
    if (pipe2(pipe_ends, O_NONBLOCK) != 0) abort();
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, datagrams) != 0) abort();
    if (write(file, scratch.data(), 4096) != 4096) abort();
    if (write(pipe_ends[1], "a", 1) != 1) abort();
    epoll_event event = {EPOLLIN, {.u64 = 0x1122334455667788}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_ends[0], &event);
    bind_to_loopback(listener, listener_name);
    bind_to_loopback(udp, udp_name);
    listen(listener, 100);
    syscall(SYS_timer_create, CLOCK_MONOTONIC, nullptr, &timer);
    const std::string name = "/hanare-arguments-" + std::to_string(getpid());
    mq_attr attributes = {};
    attributes.mq_maxmsg = 1;
    attributes.mq_msgsize = 8;
    queue = mq_open(name.c_str(), O_CREAT | O_RDWR | O_NONBLOCK, 0600, &attributes);
    mq_unlink(name.c_str());
    syscall(SYS_io_setup, 1, &aio);
}

// Whom nobody accepted goes first, so that there is always room.
void Things::connect_client() {
    for (int accepted; (accepted = accept(listener, nullptr, nullptr)) >= 0;) close(accepted);
    client = socket(AF_INET, SOCK_STREAM, 0);
    connect(client, reinterpret_cast<sockaddr*>(&listener_name), sizeof listener_name);
}

void Things::send_udp() {
    sendto(udp, "ab", 2, 0, reinterpret_cast<sockaddr*>(&udp_name), sizeof udp_name);
}

void Things::send_to_queue() { mq_send(queue, "abcdefgh", 8, 77); }

Things& things() {
    static Things made;
    return made;
}

std::vector<Case> cases_of_sockets() { return joined({socket_cases(), waiting_cases()}); }

}  // namespace hanare::intercept::argument_cases
