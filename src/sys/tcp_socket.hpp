// SPDX-License-Identifier: Apache-2.0
//
// TCP sockets.  Hosts are numeric addresses (IPv4, IPv6): names are looked up by whoever has time
// for it.  All descriptors are non-blocking and send small segments at once (TCP_NODELAY).  Opening
// and connecting are for ordinary threads; the rest is async-signal-safe and no cancellation
// points.
//
// A peer whose machine or network is gone says nothing about it.  While nothing is under way to it
// the kernel asks (keep-alive), and the socket fails within some ten seconds; else whoever waits
// has to look at delivery_to().  A process that is stopped is not gone: its kernel answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::sys {

bool is_loopback(const std::string& host);

// Port 0: the kernel's choice.
Result<FileDescriptor> listen_tcp(const std::string& host, uint16_t port);
Result<uint16_t> port_of(const FileDescriptor& socket);

// Not open, and why in errno, when nobody waits any more (EAGAIN) or there are no more descriptors.
FileDescriptor accept_tcp(const FileDescriptor& listener) noexcept;

// PEER_LOST when nobody listens there, TIMEOUT.
Result<FileDescriptor> connect_tcp(const std::string& host, uint16_t port, int timeout_ms);

// A range of memory of a transfer: of the layout of struct iovec.
struct Part {
    std::byte* address = nullptr;
    size_t bytes = 0;
};

// As much as goes at once, in order.  Returns how much, or a negative errno value: -EAGAIN, nothing
// goes at the moment, also for want of the kernel's memory; without SIGPIPE.
ptrdiff_t send_parts(int socket, std::span<const Part> parts) noexcept;
// As much as is there.  0: the peer has closed.
ptrdiff_t receive_parts(int socket, std::span<const Part> parts) noexcept;

// What has become of all that was sent.
enum class Delivery {
    kDone,        // the peer's kernel has it; also where the socket is none of TCP
    kUnderWay,    // not yet, or the peer has no room
    kUnanswered,  // nothing came from there for kSilenceMs, though it was asked several times
};
inline constexpr uint32_t kSilenceMs = 10'000;
Delivery delivery_to(int socket) noexcept;

// Nothing goes any more, in either direction, and both sides notice.
void shut_down(int socket) noexcept;

// What sockets wait for.
struct Ready {
    bool to_read = false;
    bool to_write = false;
};
// Sleeps until one of what is wanted is so, or `other` is readable, or the time is over (negative:
// no limit); an error of the socket counts as both.
Ready wait_for_socket(int socket, Ready wanted, int timeout_ms, int other = -1) noexcept;

}  // namespace hanare::sys
