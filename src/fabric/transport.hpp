// SPDX-License-Identifier: Apache-2.0
//
// Transport: the bytes of a connection, as they are or in sealed frames.  Both ways it has the form
// of a socket: as much as goes at once, into and out of the caller's memory.
//
// Sealed, what is sent is encrypted on its way into a buffer, and what is received is decrypted on
// its way out of one, into its destination.  Where that is memory of others than who waits for it
// (`Opening::kChecked`), only what was found to be genuine gets there.
//
// Sending is for one thread at a time, receiving for another.  Async-signal-safe, never waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "fabric/handshake.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::fabric {

class Transport {
public:
    // Plain bytes in a sealed frame, at most.
    static constexpr size_t kFrameBytesMax = 68 * 1024;

    explicit Transport(sys::FileDescriptor socket);
    Transport(Transport&&) = delete;
    ~Transport();

    enum class Opening {
        kStraight,  // what is not genuine may have changed the destination when the error shows
        kChecked,
    };
    // From now on; once, before anything else.  `side` is this one's.
    Result<void> seal_with(const SessionKeys& keys, Handshake::Side side, Opening opening);

    int descriptor() const noexcept { return socket_.number(); }

    // How much was taken, which may wait in a buffer for flush(); -EAGAIN: nothing goes at the
    // moment; another negative errno value: never again.
    ptrdiff_t send(std::span<const sys::Part> parts) noexcept;
    // 0: all that was taken has gone; otherwise as send().
    int flush() noexcept;
    // How much has come; 0: the peer has closed; -EAGAIN; -EBADMSG: not sealed by the peer.
    ptrdiff_t receive(std::span<const sys::Part> parts) noexcept;
    // Whether receive() would have something though the socket has nothing.  Any thread.
    bool has_received() const noexcept { return has_received_.load(); }

private:
    struct Sealed;
    ptrdiff_t receive_sealed() noexcept;
    uint32_t frame_bytes() const noexcept;
    bool has_good_length() const noexcept;
    bool has_whole_frame() const noexcept;
    ptrdiff_t open_frame(std::span<const sys::Part> parts) noexcept;
    ptrdiff_t take_plain(std::span<const sys::Part> parts) noexcept;

    const sys::FileDescriptor socket_;
    std::unique_ptr<Sealed> sealed_;
    std::atomic<bool> has_received_{false};
};

}  // namespace hanare::fabric
