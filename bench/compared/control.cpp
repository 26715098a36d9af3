// SPDX-License-Identifier: Apache-2.0
#include "bench/compared/control.hpp"

#include <cerrno>

#include "sys/local_socket.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::bench {
namespace {

constexpr int kMeetingMs = 30'000;

}  // namespace

Result<sys::FileDescriptor> Control::listen(const std::string& name) {
    return sys::listen_local(name);
}

Result<Control> Control::accept(const sys::FileDescriptor& listener) {
    sys::wait_for_socket(listener.number(), {.to_read = true}, kMeetingMs);
    sys::FileDescriptor socket = sys::accept_local(listener);
    if (socket.is_open()) return Control(std::move(socket));
    return fail(HANARE_STATUS_TIMEOUT, "the other process has not come");
}

Result<Control> Control::connect(const std::string& name) {
    HANARE_TRY_ASSIGN(sys::FileDescriptor socket, sys::connect_local(name));
    return Control(std::move(socket));
}

Result<void> Control::send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const sys::Part part = {const_cast<std::byte*>(bytes.data()), bytes.size()};
        const ptrdiff_t sent = sys::send_parts(socket_.number(), {&part, 1});
        if (sent == -EAGAIN) {
            sys::wait_for_socket(socket_.number(), {.to_write = true}, -1);
        } else if (sent <= 0) {
            return fail(HANARE_STATUS_PEER_LOST, "the other process has ended");
        } else {
            bytes = bytes.subspan(static_cast<size_t>(sent));
        }
    }
    return {};
}

Result<void> Control::receive(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
        const sys::Part part = {bytes.data(), bytes.size()};
        const ptrdiff_t received = sys::receive_parts(socket_.number(), {&part, 1});
        if (received == -EAGAIN) {
            sys::wait_for_socket(socket_.number(), {.to_read = true}, -1);
        } else if (received <= 0) {
            return fail(HANARE_STATUS_PEER_LOST, "the other process has ended");
        } else {
            bytes = bytes.subspan(static_cast<size_t>(received));
        }
    }
    return {};
}

std::optional<char> Control::look() {
    std::byte byte{};
    const sys::Part part = {&byte, 1};
    const ptrdiff_t received = sys::receive_parts(socket_.number(), {&part, 1});
    if (received == -EAGAIN) return std::nullopt;
    return received == 1 ? static_cast<char>(byte) : '\0';
}

}  // namespace hanare::bench
