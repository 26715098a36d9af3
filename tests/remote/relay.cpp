// SPDX-License-Identifier: Apache-2.0
#include "remote/relay.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "sys/pipe.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::test {
namespace {

constexpr size_t kPartBytes = 65536;
// Of an answer with a block or a good part of one, whose middle is nothing but data.
constexpr size_t kLongBytes = 8192;
constexpr size_t kReplayedBytes = 2048;

sys::FileDescriptor connect_to(uint16_t port) {
    sys::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
        0) {
        socket.close();
    }
    return socket;
}

bool send_all(const sys::FileDescriptor& to, const std::vector<std::byte>& bytes) {
    for (size_t done = 0; done < bytes.size();) {
        const ssize_t sent =
            send(to.number(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        done += static_cast<size_t>(sent);
    }
    return true;
}

}  // namespace

Relay::Relay(uint16_t server_port, Harm harm, uint64_t after_bytes, uint32_t times)
    : server_port_(server_port), harm_(harm), after_bytes_(after_bytes), times_(times) {
    auto listener = sys::listen_tcp("127.0.0.1", 0);
    auto pipe = sys::make_pipe();
    if (!listener || !pipe) throw std::runtime_error("no relay");
    listener_ = std::move(*listener);
    port_ = sys::port_of(listener_).value();
    end_from_ = std::move(pipe->from);
    end_to_ = std::move(pipe->to);
    thread_ = std::jthread([this] { run(); });
}

Relay::~Relay() { end_to_.close(); }

void Relay::run() {
    for (;;) {
        std::vector<pollfd> polled = {{.fd = end_from_.number(), .events = 0, .revents = 0},
                                      {.fd = listener_.number(), .events = POLLIN, .revents = 0}};
        const bool is_silent = harm_ == Harm::kSilence && has_harmed();
        for (const Line& line : lines_) {
            const short wanted = is_silent ? 0 : POLLIN;
            polled.push_back({.fd = line.client.number(), .events = wanted, .revents = 0});
            polled.push_back({.fd = line.server.number(), .events = wanted, .revents = 0});
        }
        if (poll(polled.data(), polled.size(), -1) < 0) continue;
        if (polled[0].revents != 0) return;
        // From behind: the numbers of those before stay.
        for (size_t i = lines_.size(); i-- > 0;) {
            const short client = polled[2 + 2 * i].revents;
            const short server = polled[3 + 2 * i].revents;
            const bool goes_on =
                (client == 0 || pass_on(lines_[i].client, lines_[i].server, false)) &&
                (server == 0 || pass_on(lines_[i].server, lines_[i].client, true));
            if (!goes_on) lines_.erase(lines_.begin() + static_cast<ptrdiff_t>(i));
        }
        if (polled[1].revents != 0) accept();
    }
}

void Relay::accept() {
    sys::FileDescriptor client(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    sys::FileDescriptor server = connect_to(server_port_);
    if (client.is_open() && server.is_open()) {
        lines_.push_back({std::move(client), std::move(server)});
    }
}

// False: it is over.
bool Relay::pass_on(const sys::FileDescriptor& from, const sys::FileDescriptor& to,
                    bool is_answer) {
    std::vector<std::byte> bytes(kPartBytes);
    const ssize_t got = recv(from.number(), bytes.data(), bytes.size(), 0);
    if (got <= 0) return false;
    bytes.resize(static_cast<size_t>(got));
    if (is_answer) {
        answered_bytes_ += bytes.size();
        harm(bytes);
        if (harm_ == Harm::kSilence && has_harmed()) return true;
    }
    return send_all(to, bytes);
}

void Relay::harm(std::vector<std::byte>& bytes) {
    if (bytes.size() < kLongBytes || harm_ == Harm::kNone || harms_ == times_) return;
    const size_t middle = bytes.size() / 2;
    if (seen_.empty()) {
        const auto begin = bytes.begin() + static_cast<ptrdiff_t>(middle);
        seen_.assign(begin, begin + kReplayedBytes);
        return;
    }
    if (answered_bytes_ < after_bytes_) return;
    if (harm_ == Harm::kChange) bytes[middle] ^= std::byte{1};
    if (harm_ == Harm::kReplay) {
        std::ranges::copy(seen_, bytes.begin() + static_cast<ptrdiff_t>(middle));
    }
    ++harms_;
}

}  // namespace hanare::test
