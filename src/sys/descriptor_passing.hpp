// SPDX-License-Identifier: Apache-2.0
//
// Messages between processes of this machine that carry descriptors (SCM_RIGHTS), and what the
// kernel knows about who is at the other end.  Sockets are those of local_socket.hpp.
// Async-signal-safe, never waits, no cancellation points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sys/file.hpp"

namespace hanare::sys {

inline constexpr size_t kPassedMax = 2;

// All of the message or nothing: 0, or an errno value (EAGAIN: the peer has not yet read what lies
// there; ENOBUFS, ENOMEM: the kernel has no memory).  The descriptors stay the caller's.
int send_message(int socket, std::span<const std::byte> message,
                 std::span<const int> descriptors = {}) noexcept;

// As much as is there, at most the room, and the descriptors that came with it in their order;
// whatever else came is closed.  0: the peer has closed; a negative errno value: -EAGAIN, nothing
// yet.
ptrdiff_t receive_message(int socket, std::span<std::byte> room,
                          std::span<FileDescriptor> descriptors = {}) noexcept;

// The process that listened or connected at the other end, 0 where it is not visible from here.
int peer_process(int socket) noexcept;

}  // namespace hanare::sys
