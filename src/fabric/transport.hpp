// SPDX-License-Identifier: Apache-2.0
//
// Transport: the bytes of a connection: over a socket, as they are or in sealed frames, or through
// memory that both processes have mapped (byte_ring.hpp).  Always it has the form of a socket: as
// much as goes at once, into and out of the caller's memory.
//
// Through memory, the socket carries the bells for whoever sleeps, and shows that the peer is gone.
//
// Sealed, what is sent is encrypted on its way into a buffer, and what is received is decrypted on
// its way out of one, into its destination.  Where that is memory of others than who waits for it
// (`Opening::kChecked`), only what was found to be genuine gets there, and data that is left as it
// is.
//
// Sending is for one thread at a time, receiving for another.  Async-signal-safe, never waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "fabric/byte_ring.hpp"
#include "fabric/handshake.hpp"
#include "sys/memory.hpp"
#include "sys/poll_set.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::fabric {

class Transport {
public:
    // Plain bytes in a sealed frame, at most.
    static constexpr size_t kFrameBytesMax = 68 * 1024;

    explicit Transport(sys::FileDescriptor socket);
    // What is between two processes of this machine: a ring for what the source sends, and one for
    // what it receives.
    static constexpr size_t kSharedBytes = 2 * ByteRing::kMemoryBytes;
    Transport(sys::FileDescriptor socket, sys::Mapping shared, Handshake::Side side);
    Transport(Transport&&) = delete;
    ~Transport();

    enum class Opening {
        kStraight,  // what is not genuine may have changed the destination when the error shows
        kChecked,
    };
    // From now on; once, before anything else.  `side` is this one's.  kSealedButData: what is said
    // to be data goes as it is, behind the end of a frame.
    Result<void> seal_with(const SessionKeys& keys, Handshake::Side side, Opening opening,
                           Protection protection = Protection::kSealed);
    bool leaves_data() const noexcept;

    int descriptor() const noexcept { return socket_.number(); }
    // In the child of a fork, where nothing else is called any more.
    void abandon_in_child() noexcept { socket_.close(); }

    // How much was taken, which may wait in a buffer for flush(); -EAGAIN: nothing goes at the
    // moment; another negative errno value: never again.
    ptrdiff_t send(std::span<const sys::Part> parts) noexcept;
    // Where data is left as it is: the last part is data.
    ptrdiff_t send_with_data(std::span<const sys::Part> parts) noexcept;
    // 0: all that was taken has gone; otherwise as send().
    int flush() noexcept;
    // How much has come; 0: the peer has closed; -EAGAIN; -EBADMSG: not sealed by the peer.
    ptrdiff_t receive(std::span<const sys::Part> parts) noexcept;
    // Where data is left as it is: so much of it comes next.  False: the frame has not ended.
    [[nodiscard]] bool expect_data(uint32_t bytes) noexcept;
    // Whether receive() would have something though the socket has nothing.  Any thread.
    bool has_received() const noexcept {
        return rings_ != nullptr ? has_in_ring() : has_received_.load();
    }

    // Whether the peer's machine does not answer to what was sent, which the kernel alone would
    // take a quarter of an hour to find (sys::delivery_to); for who waits, once in a while.
    sys::Delivery delivery() const noexcept {
        return rings_ != nullptr ? sys::Delivery::kDone : sys::delivery_to(socket_.number());
    }

    // Sleeps until there may be something to receive, or room to send, or `other` is readable, or
    // the time is over.  One thread at a time.
    void wait(sys::Ready wanted, int timeout_ms, int other) noexcept;

    // For who waits for the sockets of many: through memory, a bell has to be asked for, time and
    // again, before the socket shows anything.  Whether there is something already, or room.
    bool is_in_memory() const noexcept { return rings_ != nullptr; }
    bool ask_for_bell(sys::Ready wanted) noexcept;
    void take_bells() noexcept;
    // What wait() would wait for, or false where it would not; and the end of that.
    bool begin_wait(sys::PollSet& set, sys::Ready wanted) noexcept;
    void end_wait() noexcept;

private:
    struct Sealed;
    struct Rings;
    bool has_in_ring() const noexcept;
    void ring_bell() noexcept;
    ptrdiff_t send_in_memory(std::span<const sys::Part> parts) noexcept;
    ptrdiff_t receive_in_memory(std::span<const sys::Part> parts) noexcept;
    ptrdiff_t make_frame(std::span<const sys::Part> parts) noexcept;
    ptrdiff_t receive_sealed() noexcept;
    ptrdiff_t receive_data(std::span<const sys::Part> parts) noexcept;
    ptrdiff_t receive_frame(std::span<const sys::Part> parts) noexcept;
    void note_received() noexcept;
    uint32_t frame_bytes() const noexcept;
    bool has_good_length() const noexcept;
    bool has_whole_frame() const noexcept;
    ptrdiff_t open_frame(std::span<const sys::Part> parts) noexcept;
    ptrdiff_t take_plain(std::span<const sys::Part> parts) noexcept;

    sys::FileDescriptor socket_;
    std::unique_ptr<Sealed> sealed_;
    std::unique_ptr<Rings> rings_;
    std::atomic<bool> has_received_{false};
};

}  // namespace hanare::fabric
