// SPDX-License-Identifier: Apache-2.0
//
// TcpConnection: a peer's connection at the target.  Carries out its requests, one after the other,
// and answers them in this order.  What a put carries is received straight into the region (if it
// is not sealed), what a get wants is sent from there; small things go through buffers, many in one
// system call.
//
// By one thread; never waits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "fabric/call_handler.hpp"
#include "fabric/exposed_regions.hpp"
#include "fabric/handshake.hpp"
#include "fabric/transport.hpp"
#include "fabric/wire.hpp"

namespace hanare::fabric {

class TcpConnection {
public:
    // `handshake`, if there is one, comes first.
    TcpConnection(std::unique_ptr<Transport> transport, ExposedRegions& regions, Caller caller = {},
                  std::optional<Handshake> handshake = {});
    // Its caller is told.
    ~TcpConnection();
    TcpConnection(const TcpConnection&) = delete;
    TcpConnection& operator=(const TcpConnection&) = delete;

    const Transport& transport() const noexcept { return *transport_; }
    Transport& transport() noexcept { return *transport_; }
    int descriptor() const noexcept { return transport_->descriptor(); }
    // Not yet known to be of the job.
    bool is_stranger() const noexcept { return handshake_.has_value(); }

    enum class Outcome {
        kIdle,    // nothing more has come
        kMore,    // there is more, but others have a right to be served, too
        kFull,    // the peer has to take its answers first
        kClosed,  // the peer has ended, or talks nonsense
    };
    Outcome serve() noexcept;
    // Whether anything has come since this was asked last.
    bool take_served() noexcept { return std::exchange(was_served_, false); }

private:
    static constexpr size_t kInBytes = 4096;
    // Room for the answer to any request but a large get.
    static constexpr size_t kAnswerBytesMax = sizeof(AnswerHeader) + kMessageBytesMax;
    static_assert(kInBytes >= sizeof(RequestHeader) + kMessageBytesMax);
    static constexpr size_t kAnswersBytes = 8192;
    static constexpr size_t kTurnsMax = 32;
    static constexpr size_t kPutAnswersMax = 4;
    static constexpr size_t kTurnsBytesMax = size_t{2} << 20;

    size_t in_bytes() const noexcept { return in_end_ - in_begin_; }
    Outcome shake_hands() noexcept;
    bool begin_to_seal() noexcept;
    bool carry_out() noexcept;
    bool may_answer_later() const noexcept;
    Outcome answered(Outcome outcome) noexcept;
    Outcome closed() noexcept;
    bool begin_request() noexcept;
    void begin_put() noexcept;
    bool go_on_with_put() noexcept;
    ptrdiff_t receive() noexcept;
    void put_from_buffer() noexcept;
    void get() noexcept;
    void fetch() noexcept;
    void push() noexcept;
    void pop() noexcept;
    void call() noexcept;
    void answer(hanare_status status, uint32_t bytes = 0, uint64_t value = 0) noexcept;
    void send_with(std::span<std::byte> data) noexcept;
    bool flush() noexcept;
    bool leaves_data() const noexcept;

    const std::unique_ptr<Transport> transport_;
    ExposedRegions& regions_;
    const Caller caller_;
    bool has_called_ = false;
    size_t secret_number_ = 0;
    std::optional<Handshake> handshake_;
    bool is_broken_ = false;
    bool was_served_ = false;

    std::array<std::byte, kInBytes> in_;
    size_t in_begin_ = 0;
    size_t in_end_ = 0;

    RequestHeader request_;
    uint32_t requests_ = 0;  // that have begun
    // Of a put that has not come as a whole.
    uint32_t data_left_ = 0;
    hanare_status put_status_ = HANARE_STATUS_OK;

    const std::unique_ptr<std::byte[]> out_;
    size_t out_begin_ = 0;
    size_t out_end_ = 0;
    size_t out_data_ = 0;     // at the end of it, that goes as it is
    size_t put_answers_ = 0;  // in it, to puts that came straight into their regions
};

}  // namespace hanare::fabric
