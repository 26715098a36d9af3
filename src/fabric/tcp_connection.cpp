// SPDX-License-Identifier: Apache-2.0
#include "fabric/tcp_connection.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "fabric/apply.hpp"

namespace hanare::fabric {
namespace {

// Whoever holds a queue and does not run must not hold up all peers.
constexpr uint64_t kQueuePatience_ns = 20'000;

}  // namespace

TcpConnection::TcpConnection(std::unique_ptr<Transport> transport, ExposedRegions& regions,
                             Caller caller, std::optional<Handshake> handshake)
    : transport_(std::move(transport)),
      regions_(regions),
      caller_(caller),
      handshake_(std::move(handshake)),
      out_(std::make_unique_for_overwrite<std::byte[]>(kAnswersBytes + kRequestBytesMax)) {}

TcpConnection::~TcpConnection() {
    if (has_called_) caller_.handler->caller_left(caller_.number);
}

TcpConnection::Outcome TcpConnection::serve() noexcept {
    if (handshake_) {
        const Outcome outcome = shake_hands();
        if (handshake_) return outcome;
    }
    size_t received_bytes = 0;
    for (size_t turn = 0; turn < kTurnsMax && received_bytes < kTurnsBytesMax; ++turn) {
        if (!carry_out()) return is_broken_ ? closed() : Outcome::kFull;
        const ptrdiff_t moved = receive();
        if (moved == -EAGAIN) return answered(Outcome::kIdle);
        if (moved <= 0) return closed();
        received_bytes += static_cast<size_t>(moved);
    }
    if (!carry_out()) return is_broken_ ? closed() : Outcome::kFull;
    return answered(Outcome::kMore);
}

TcpConnection::Outcome TcpConnection::answered(Outcome outcome) noexcept {
    if (flush()) return outcome;
    return is_broken_ ? Outcome::kClosed : Outcome::kFull;
}

// Puts that have come as a whole are answered even where nothing sensible follows.
TcpConnection::Outcome TcpConnection::closed() noexcept {
    if (may_answer_later()) flush();
    return Outcome::kClosed;
}

// Without a handshake afterwards: it has succeeded.
TcpConnection::Outcome TcpConnection::shake_hands() noexcept {
    switch (handshake_->go_on()) {
        case Handshake::State::kWaitsToRead: return Outcome::kIdle;
        case Handshake::State::kWaitsToWrite: return Outcome::kFull;
        case Handshake::State::kDone:
            if (!begin_to_seal()) break;
            secret_number_ = handshake_->secret_number();
            handshake_.reset();
            return Outcome::kMore;
        case Handshake::State::kStranger:
        case Handshake::State::kLost: break;
    }
    return Outcome::kClosed;
}

bool TcpConnection::begin_to_seal() noexcept {
    if (handshake_->protection() == Protection::kAuthenticated) return true;
    try {
        const Result<SessionKeys> keys = handshake_->keys();
        return keys &&
               transport_->seal_with(*keys, Handshake::Side::kTarget, Transport::Opening::kChecked,
                                     handshake_->protection());
    } catch (const std::bad_alloc&) {
        return false;
    }
}

// All that has come; false when the answers cannot be sent.
bool TcpConnection::carry_out() noexcept {
    do {
        if (!may_answer_later() && !flush()) return false;
        while (!is_broken_ && out_data_ == 0 && out_end_ + kAnswerBytesMax <= kAnswersBytes &&
               (data_left_ != 0 ? go_on_with_put() : begin_request())) {
        }
    } while (out_begin_ != out_end_ && !is_broken_ && !may_answer_later());
    // What was taken may still lie in the transport.
    return !is_broken_ && (may_answer_later() || flush());
}

// Nothing but answers to large puts: several of these take one system call here and there, as long
// as there is more to receive.
bool TcpConnection::may_answer_later() const noexcept {
    return put_answers_ != 0 && out_begin_ == 0 && put_answers_ < kPutAnswersMax &&
           out_end_ == put_answers_ * sizeof(AnswerHeader);
}

// ---- requests

// Reads what has come, of a large put straight into the region.  As receive_parts().
ptrdiff_t TcpConnection::receive() noexcept {
    std::memmove(in_.data(), in_.data() + in_begin_, in_bytes());
    in_end_ -= in_begin_;
    in_begin_ = 0;
    const sys::Part rest = {in_.data() + in_end_, in_.size() - in_end_};
    ExposedRegions::Access access;
    if (data_left_ != 0 && put_status_ == HANARE_STATUS_OK) {
        put_status_ =
            regions_.enter(request_.capability, kWrite,
                           request_.offset + request_.bytes - data_left_, data_left_, access);
    }
    const bool is_direct = data_left_ != 0 && put_status_ == HANARE_STATUS_OK;
    const std::array<sys::Part, 2> parts = {
        {{is_direct ? access.address() : nullptr, is_direct ? data_left_ : 0}, rest}};
    const ptrdiff_t moved = transport_->receive(parts);
    if (moved <= 0) return moved;
    was_served_ = true;
    const size_t placed = std::min<size_t>(static_cast<size_t>(moved), parts[0].bytes);
    data_left_ -= static_cast<uint32_t>(placed);
    in_end_ += static_cast<size_t>(moved) - placed;
    if (is_direct && data_left_ == 0) {
        answer(put_status_);
        ++put_answers_;
    }
    return moved;
}

// False when nothing can be done before more has come.
bool TcpConnection::begin_request() noexcept {
    if (in_bytes() < sizeof request_) return false;
    std::memcpy(&request_, in_.data() + in_begin_, sizeof request_);
    if (!is_sealed(request_) || !is_plausible(request_) || request_.sequence != requests_) {
        is_broken_ = true;
        return false;
    }
    const uint32_t carried = carried_bytes(request_);
    const bool goes_as_a_whole = carried <= kSmallBytes || request_.kind != Kind::kPut;
    if (goes_as_a_whole && in_bytes() < sizeof request_ + carried) return false;
    in_begin_ += sizeof request_;
    ++requests_;
    switch (request_.kind) {
        case Kind::kPut: begin_put(); break;
        case Kind::kGet: get(); break;
        case Kind::kFetch: fetch(); break;
        case Kind::kPush:
        case Kind::kSignal: push(); break;
        case Kind::kPop: pop(); break;
        case Kind::kCall: call(); break;
    }
    return true;
}

// The whole range is checked before any of it changes.
void TcpConnection::begin_put() noexcept {
    ExposedRegions::Access access;
    put_status_ =
        regions_.enter(request_.capability, kWrite, request_.offset, request_.bytes, access);
    access.end();
    data_left_ = request_.bytes;
    if (leaves_data()) {
        is_broken_ = in_bytes() != 0 || !transport_->expect_data(request_.bytes);
        return;
    }
    put_from_buffer();
}

// Of the request at hand.
bool TcpConnection::leaves_data() const noexcept {
    return transport_->leaves_data() && is_data(request_.kind, request_.bytes);
}

bool TcpConnection::go_on_with_put() noexcept {
    if (in_bytes() == 0) return false;
    put_from_buffer();
    return true;
}

// As much of it as has come; the answer when that is all.
void TcpConnection::put_from_buffer() noexcept {
    const auto bytes = static_cast<uint32_t>(std::min<size_t>(data_left_, in_bytes()));
    if (put_status_ == HANARE_STATUS_OK) {
        put_status_ =
            apply_put(regions_, request_.capability, request_.offset + request_.bytes - data_left_,
                      {in_.data() + in_begin_, bytes});
    }
    in_begin_ += bytes;
    data_left_ -= bytes;
    if (data_left_ == 0) answer(put_status_);
}

void TcpConnection::get() noexcept {
    ExposedRegions::Access access;
    const hanare_status status =
        regions_.enter(request_.capability, kRead, request_.offset, request_.bytes, access);
    if (status != HANARE_STATUS_OK) return answer(status);
    answer(HANARE_STATUS_OK, request_.bytes);
    if (request_.bytes > kSmallBytes) return send_with({access.address(), request_.bytes});
    copy_words(out_.get() + out_end_, access.address(), request_.bytes);
    out_end_ += request_.bytes;
}

void TcpConnection::fetch() noexcept {
    const FetchRequest request = {.op = request_.fetch_op,
                                  .width = static_cast<uint8_t>(request_.width & ~kWakes),
                                  .wakes = (request_.width & kWakes) != 0,
                                  .operand = request_.operand,
                                  .compare = request_.compare};
    uint64_t before = 0;
    const hanare_status status =
        apply_fetch(regions_, request_.capability, request_.offset, request, before);
    answer(status, 0, before);
}

void TcpConnection::push() noexcept {
    const auto apply = request_.kind == Kind::kSignal ? apply_signal : apply_push;
    answer(apply(regions_, request_.capability, {in_.data() + in_begin_, request_.bytes},
                 kQueuePatience_ns));
    in_begin_ += request_.bytes;
}

void TcpConnection::pop() noexcept {
    size_t bytes = 0;
    std::byte* const behind_header = out_.get() + out_end_ + sizeof(AnswerHeader);
    const hanare_status status = apply_pop(
        regions_, request_.capability, {behind_header, request_.bytes}, bytes, kQueuePatience_ns);
    const auto brought = static_cast<uint32_t>(status == HANARE_STATUS_OK ? bytes : 0);
    answer(status, brought, bytes);
    out_end_ += brought;
}

void TcpConnection::call() noexcept {
    const std::span<const std::byte> question(in_.data() + in_begin_, request_.bytes);
    in_begin_ += request_.bytes;
    if (caller_.handler == nullptr) return answer(HANARE_STATUS_NOT_SUPPORTED);
    if (!has_called_ && !caller_.handler->caller_came(caller_.number, secret_number_)) {
        return answer(HANARE_STATUS_NO_MEMORY);
    }
    has_called_ = true;
    size_t bytes = 0;
    const std::span<std::byte> room(out_.get() + out_end_ + sizeof(AnswerHeader),
                                    brought_bytes_max(request_));
    const hanare_status status =
        caller_.handler->answer_call(caller_.number, question, room, bytes);
    if (caller_.list != nullptr) {
        while (const uint64_t other = caller_.handler->next_to_cut_off()) {
            if (other != caller_.number) caller_.list->cut_off(other);
        }
    }
    const auto brought = static_cast<uint32_t>(status == HANARE_STATUS_OK ? bytes : 0);
    answer(status, brought, brought);
    out_end_ += brought;
}

// ---- answers

void TcpConnection::answer(hanare_status status, uint32_t bytes, uint64_t value) noexcept {
    AnswerHeader header = {.kind = request_.kind,
                           .status = static_cast<int16_t>(status),
                           .bytes = bytes,
                           .value = value,
                           .sequence = request_.sequence};
    seal(header);
    std::memcpy(out_.get() + out_end_, &header, sizeof header);
    out_end_ += sizeof header;
}

// What is in the buffer and then the data; what does not go at once is copied, since the region
// may be concealed when the peer has room again.
void TcpConnection::send_with(std::span<std::byte> data) noexcept {
    const size_t buffered = out_end_ - out_begin_;
    const std::array<sys::Part, 2> parts = {
        {{out_.get() + out_begin_, buffered}, {data.data(), data.size()}}};
    const bool leaves = leaves_data();
    const ptrdiff_t result = leaves ? transport_->send_with_data(parts) : transport_->send(parts);
    if (result < 0 && result != -EAGAIN) {
        is_broken_ = true;
        return;
    }
    const auto moved = static_cast<size_t>(std::max<ptrdiff_t>(result, 0));
    out_begin_ += std::min(moved, buffered);
    const std::span<std::byte> rest = data.subspan(moved - std::min(moved, buffered));
    if (!rest.empty()) std::memcpy(out_.get() + out_end_, rest.data(), rest.size());
    out_end_ += rest.size();
    if (leaves) out_data_ = rest.size();
    put_answers_ = 0;  // nothing may wait behind this
    if (out_begin_ == out_end_) out_begin_ = out_end_ = 0;
}

// Whether nothing is left to send.
bool TcpConnection::flush() noexcept {
    put_answers_ = 0;
    while (out_begin_ != out_end_) {
        const size_t framed = out_end_ - out_begin_ - out_data_;
        const std::array<sys::Part, 2> parts = {
            {{out_.get() + out_begin_, framed}, {out_.get() + out_begin_ + framed, out_data_}}};
        const ptrdiff_t moved = out_data_ != 0 ? transport_->send_with_data(parts)
                                               : transport_->send(std::span(parts).first(1));
        if (moved == -EAGAIN) return false;
        if (moved < 0) {
            is_broken_ = true;
            return false;
        }
        out_begin_ += static_cast<size_t>(moved);
        out_data_ = std::min(out_data_, out_end_ - out_begin_);
    }
    out_begin_ = out_end_ = 0;
    const int error = transport_->flush();
    is_broken_ = is_broken_ || (error != 0 && error != -EAGAIN);
    return error == 0;
}

}  // namespace hanare::fabric
