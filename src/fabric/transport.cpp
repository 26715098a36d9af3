// SPDX-License-Identifier: Apache-2.0
#include "fabric/transport.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/assert.hpp"
#include "fabric/frame_cipher.hpp"
#include "sys/descriptor_passing.hpp"
#include "sys/lock.hpp"

namespace hanare::fabric {
namespace {

// Of a frame: bytes that are sealed in it, these sealed, the tag.
using Length = uint32_t;
constexpr size_t kAroundFrame = sizeof(Length) + FrameCipher::kTagBytes;
constexpr size_t kSealedBytesMax = Transport::kFrameBytesMax + kAroundFrame;
// Where data comes as it is, as little of it as possible is read with what is in front of it.
constexpr size_t kAheadBytes = 2048;
constexpr size_t kPartsMax = 3;  // of what is received

// A bell for which the kernel has no memory.
constexpr uint32_t kBellAttempts = 20;
constexpr uint32_t kBellPause_us = 100;

}  // namespace

struct Transport::Sealed {
    Sealed(FrameCipher sealer_, FrameCipher opener_, Opening opening_, bool leaves_data_)
        : sealer(std::move(sealer_)),
          opener(std::move(opener_)),
          opening(opening_),
          leaves_data(leaves_data_) {}

    FrameCipher sealer;
    FrameCipher opener;
    const Opening opening;
    const bool leaves_data;
    // A frame on its way out.
    std::array<std::byte, kSealedBytesMax> out;
    size_t out_begin = 0;
    size_t out_end = 0;
    // Frames that have come, the last one perhaps not as a whole.
    std::array<std::byte, 2 * kSealedBytesMax> in;
    size_t in_begin = 0;
    size_t in_end = 0;
    size_t data_left = 0;  // that comes next, as it is
    // What was opened and had no place.
    std::array<std::byte, kFrameBytesMax> plain;
    size_t plain_begin = 0;
    size_t plain_end = 0;

    size_t in_bytes() const noexcept { return in_end - in_begin; }
};

struct Transport::Rings {
    Rings(sys::Mapping shared, Handshake::Side side)
        : memory(std::move(shared)),
          out(half(side == Handshake::Side::kSource)),
          in(half(side == Handshake::Side::kTarget)) {}
    std::byte* half(bool is_first) const noexcept {
        return memory.address() + (is_first ? 0 : ByteRing::kMemoryBytes);
    }

    const sys::Mapping memory;
    ByteRing out;
    ByteRing in;
    std::atomic<bool> is_closed{false};  // by the peer
    uint32_t empty_looks = 0;            // of the receiving thread
};

Transport::Transport(sys::FileDescriptor socket) : socket_(std::move(socket)) {}

Transport::Transport(sys::FileDescriptor socket, sys::Mapping shared, Handshake::Side side)
    : socket_(std::move(socket)), rings_(std::make_unique<Rings>(std::move(shared), side)) {}

Transport::~Transport() = default;

Result<void> Transport::seal_with(const SessionKeys& keys, Handshake::Side side, Opening opening,
                                  Protection protection) {
    const bool is_source = side == Handshake::Side::kSource;
    HANARE_TRY_ASSIGN(FrameCipher sealer,
                      FrameCipher::make(is_source ? keys.to_target : keys.to_source));
    HANARE_TRY_ASSIGN(FrameCipher opener,
                      FrameCipher::make(is_source ? keys.to_source : keys.to_target));
    sealed_ = std::make_unique<Sealed>(std::move(sealer), std::move(opener), opening,
                                       protection == Protection::kSealedButData);
    return {};
}

bool Transport::leaves_data() const noexcept { return sealed_ != nullptr && sealed_->leaves_data; }

// ---- sending

ptrdiff_t Transport::send(std::span<const sys::Part> parts) noexcept {
    if (rings_ != nullptr) return send_in_memory(parts);
    if (sealed_ == nullptr) return sys::send_parts(socket_.number(), parts);
    if (const int error = flush(); error != 0) return error;
    const ptrdiff_t length = make_frame(parts);
    const int error = flush();
    return error == 0 || error == -EAGAIN ? length : error;
}

// How much of the parts is in it.
ptrdiff_t Transport::make_frame(std::span<const sys::Part> parts) noexcept {
    Sealed& to = *sealed_;
    size_t offered = 0;
    for (const sys::Part& part : parts) offered += part.bytes;
    const auto length = static_cast<Length>(std::min(offered, kFrameBytesMax));
    to.out_begin = to.out_end = 0;
    if (length == 0) return 0;
    std::memcpy(to.out.data(), &length, sizeof length);
    to.sealer.begin(std::as_bytes(std::span(&length, 1)));
    size_t at = sizeof length;
    size_t left = length;
    for (const sys::Part& part : parts) {
        const size_t bytes = std::min(part.bytes, left);
        to.sealer.seal(part.address, to.out.data() + at, bytes);
        at += bytes;
        left -= bytes;
    }
    to.sealer.end_sealing(to.out.data() + at);
    to.out_end = at + FrameCipher::kTagBytes;
    return static_cast<ptrdiff_t>(length);
}

// The frame and the data in one call; what does not go of the frame waits as in send().
ptrdiff_t Transport::send_with_data(std::span<const sys::Part> parts) noexcept {
    if (const int error = flush(); error != 0) return error;
    Sealed& to = *sealed_;
    const std::span<const sys::Part> framed = parts.first(parts.size() - 1);
    size_t offered = 0;
    for (const sys::Part& part : framed) offered += part.bytes;
    if (offered > kFrameBytesMax) return send(framed);
    const ptrdiff_t length = make_frame(framed);
    const std::array<sys::Part, 2> both = {{{to.out.data(), to.out_end}, parts.back()}};
    const ptrdiff_t moved = sys::send_parts(socket_.number(), both);
    if (moved < 0) return moved == -EAGAIN && length != 0 ? length : moved;
    to.out_begin = std::min(static_cast<size_t>(moved), to.out_end);
    return length + moved - static_cast<ptrdiff_t>(to.out_begin);
}

int Transport::flush() noexcept {
    if (sealed_ == nullptr) return 0;
    Sealed& to = *sealed_;
    while (to.out_begin != to.out_end) {
        const sys::Part part = {to.out.data() + to.out_begin, to.out_end - to.out_begin};
        const ptrdiff_t moved = sys::send_parts(socket_.number(), {&part, 1});
        if (moved < 0) return static_cast<int>(moved);
        to.out_begin += static_cast<size_t>(moved);
    }
    return 0;
}

// ---- receiving

ptrdiff_t Transport::receive(std::span<const sys::Part> parts) noexcept {
    if (rings_ != nullptr) return receive_in_memory(parts);
    if (sealed_ == nullptr) return sys::receive_parts(socket_.number(), parts);
    const ptrdiff_t moved = sealed_->data_left != 0 ? receive_data(parts) : receive_frame(parts);
    if (moved > 0) note_received();
    return moved;
}

void Transport::note_received() noexcept {
    const Sealed& from = *sealed_;
    const bool has_more =
        from.data_left != 0 ? from.in_bytes() != 0 : has_whole_frame() || !has_good_length();
    has_received_.store(from.plain_begin != from.plain_end || has_more);
}

ptrdiff_t Transport::receive_frame(std::span<const sys::Part> parts) noexcept {
    const Sealed& from = *sealed_;
    ptrdiff_t moved = 0;
    if (from.plain_begin == from.plain_end) {
        while (!has_whole_frame()) {
            if (!has_good_length()) return -EBADMSG;
            if (const ptrdiff_t more = receive_sealed(); more <= 0) return more;
        }
        moved = open_frame(parts);
    }
    return moved != 0 ? moved : take_plain(parts);
}

bool Transport::expect_data(uint32_t bytes) noexcept {
    Sealed& from = *sealed_;
    if (from.plain_begin != from.plain_end) return false;
    from.data_left = bytes;
    note_received();
    return true;
}

// What has come with the frame in front of it is copied, the rest received where it belongs, and a
// little of what is behind it.
ptrdiff_t Transport::receive_data(std::span<const sys::Part> parts) noexcept {
    Sealed& from = *sealed_;
    size_t room = 0;
    std::array<sys::Part, kPartsMax + 1> limited;
    HANARE_ASSERT(parts.size() <= kPartsMax);
    for (size_t i = 0; i < parts.size(); ++i) {
        limited[i] = {parts[i].address, std::min(parts[i].bytes, from.data_left - room)};
        room += limited[i].bytes;
    }
    const std::span<const sys::Part> wanted = std::span(limited).first(parts.size());
    size_t moved = 0;
    if (from.in_bytes() != 0) {
        for (const sys::Part& part : wanted) {
            const size_t bytes = std::min(part.bytes, from.in_bytes());
            if (bytes == 0) continue;
            std::memcpy(part.address, from.in.data() + from.in_begin, bytes);
            from.in_begin += bytes;
            moved += bytes;
        }
    } else {
        limited[parts.size()] = {from.in.data(), kAheadBytes};
        const ptrdiff_t got =
            sys::receive_parts(socket_.number(), std::span(limited).first(parts.size() + 1));
        if (got <= 0) return got;
        moved = std::min(static_cast<size_t>(got), room);
        from.in_begin = 0;
        from.in_end = static_cast<size_t>(got) - moved;
    }
    from.data_left -= moved;
    return static_cast<ptrdiff_t>(moved);
}

ptrdiff_t Transport::receive_sealed() noexcept {
    Sealed& from = *sealed_;
    if (from.in_begin != 0) {
        std::memmove(from.in.data(), from.in.data() + from.in_begin, from.in_bytes());
        from.in_end -= from.in_begin;
        from.in_begin = 0;
    }
    size_t wanted = from.in.size() - from.in_end;
    if (from.leaves_data) {
        const size_t known = frame_bytes() != 0 ? frame_bytes() + kAroundFrame : 0;
        wanted = std::min(wanted, std::max(kAheadBytes, known - std::min(known, from.in_end)));
    }
    const sys::Part rest = {from.in.data() + from.in_end, wanted};
    const ptrdiff_t moved = sys::receive_parts(socket_.number(), {&rest, 1});
    if (moved > 0) from.in_end += static_cast<size_t>(moved);
    return moved;
}

// Of the oldest frame, 0 while it is not known.
uint32_t Transport::frame_bytes() const noexcept {
    Length length = 0;
    if (sealed_->in_bytes() >= sizeof length) {
        std::memcpy(&length, sealed_->in.data() + sealed_->in_begin, sizeof length);
    }
    return length;
}

bool Transport::has_good_length() const noexcept {
    if (sealed_->in_bytes() < sizeof(Length)) return true;
    return frame_bytes() != 0 && frame_bytes() <= kFrameBytesMax;
}

bool Transport::has_whole_frame() const noexcept {
    return frame_bytes() != 0 && has_good_length() &&
           sealed_->in_bytes() >= frame_bytes() + kAroundFrame;
}

// The oldest one.  How much of it went into the parts straight away; the rest is in `plain`.
ptrdiff_t Transport::open_frame(std::span<const sys::Part> parts) noexcept {
    Sealed& from = *sealed_;
    const Length length = frame_bytes();
    const std::byte* at = from.in.data() + from.in_begin + sizeof length;
    from.opener.begin(std::as_bytes(std::span(&length, 1)));
    size_t left = length;
    if (from.opening == Opening::kStraight) {
        for (const sys::Part& part : parts) {
            const size_t bytes = std::min(part.bytes, left);
            from.opener.open(at, part.address, bytes);
            at += bytes;
            left -= bytes;
        }
    }
    from.opener.open(at, from.plain.data(), left);
    const bool is_genuine = from.opener.end_opening(at + left);
    from.in_begin += length + kAroundFrame;
    from.plain_begin = 0;
    from.plain_end = is_genuine ? left : 0;
    return is_genuine ? static_cast<ptrdiff_t>(length - left) : -EBADMSG;
}

ptrdiff_t Transport::take_plain(std::span<const sys::Part> parts) noexcept {
    Sealed& from = *sealed_;
    size_t taken = 0;
    for (const sys::Part& part : parts) {
        const size_t bytes = std::min(part.bytes, from.plain_end - from.plain_begin);
        if (bytes == 0) continue;
        std::memcpy(part.address, from.plain.data() + from.plain_begin, bytes);
        from.plain_begin += bytes;
        taken += bytes;
    }
    return static_cast<ptrdiff_t>(taken);
}

// ---- through memory

bool Transport::has_in_ring() const noexcept { return !rings_->in.is_empty(); }

// Where the socket is full of bells the peer has one that it has not read (EAGAIN); where it is
// closed that shows.  Only without memory of the kernel's could a sleeper miss it, and wait for
// ever: that ends the connection, which both sides notice.
void Transport::ring_bell() noexcept {
    constexpr std::byte kBell[1] = {};
    for (uint32_t attempt = 0; attempt < kBellAttempts; ++attempt) {
        const int error = sys::send_message(socket_.number(), kBell);
        if (error != ENOBUFS && error != ENOMEM) return;
        sys::yield_for_us(kBellPause_us);
    }
    sys::shut_down(socket_.number());
}

ptrdiff_t Transport::send_in_memory(std::span<const sys::Part> parts) noexcept {
    if (rings_->is_closed.load(std::memory_order_relaxed)) return -EPIPE;
    bool owes_bell = false;
    const ptrdiff_t moved = rings_->out.write(parts, owes_bell);
    if (owes_bell) ring_bell();
    return moved;
}

ptrdiff_t Transport::receive_in_memory(std::span<const sys::Part> parts) noexcept {
    // Who never sleeps has to see, too, that the peer is gone.
    constexpr uint32_t kLooksUntilBells = 4096;
    if (rings_->in.is_empty() && ++rings_->empty_looks % kLooksUntilBells == 0) take_bells();
    // Before the look into the ring: what came before the end counts, and a bell that was taken
    // rang for something there.
    const bool is_closed = rings_->is_closed.load();
    bool owes_bell = false;
    const ptrdiff_t moved = rings_->in.read(parts, owes_bell);
    if (owes_bell) ring_bell();
    return moved == -EAGAIN && is_closed ? 0 : moved;
}

bool Transport::ask_for_bell(sys::Ready wanted) noexcept {
    if (wanted.to_read) rings_->in.reader_sleeps(true);
    if (wanted.to_write) rings_->out.writer_sleeps(true);
    return (wanted.to_read && !rings_->in.is_empty()) ||
           (wanted.to_write && !rings_->out.is_full()) || rings_->is_closed.load();
}

void Transport::take_bells() noexcept {
    std::array<std::byte, 64> bells;
    ptrdiff_t got = 0;
    do {
        got = sys::receive_message(socket_.number(), bells);
    } while (got == static_cast<ptrdiff_t>(bells.size()));
    if (got == 0 || (got < 0 && got != -EAGAIN)) rings_->is_closed.store(true);
}

void Transport::wait(sys::Ready wanted, int timeout_ms, int other) noexcept {
    if (rings_ == nullptr) {
        sys::wait_for_socket(socket_.number(), wanted, timeout_ms, other);
        return;
    }
    if (!ask_for_bell(wanted)) {
        sys::wait_for_socket(socket_.number(), {.to_read = true}, timeout_ms, other);
        take_bells();
    }
    rings_->in.reader_sleeps(false);
    rings_->out.writer_sleeps(false);
}

bool Transport::begin_wait(sys::PollSet& set, sys::Ready wanted) noexcept {
    if (rings_ == nullptr) return set.add(socket_.number(), wanted);
    return !ask_for_bell(wanted) && set.add(socket_.number(), {.to_read = true});
}

void Transport::end_wait() noexcept {
    if (rings_ == nullptr) return;
    take_bells();
    rings_->in.reader_sleeps(false);
    rings_->out.writer_sleeps(false);
}

}  // namespace hanare::fabric
