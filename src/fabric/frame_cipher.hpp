// SPDX-License-Identifier: Apache-2.0
//
// FrameCipher: seals and opens the frames of one direction, one after the other, with AES-256-GCM
// (NIST SP 800-38D; libipsec-mb).  The nonce is the key's own, changed by a counter of frames that
// both ends keep: a frame that is left out, repeated or moved does not open.
//
// A frame is worked on in pieces, from begin() to the end.  By one thread at a time; everything but
// make() is async-signal-safe: it neither allocates nor locks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "fabric/handshake.hpp"

namespace hanare::fabric {

class FrameCipher {
public:
    static constexpr size_t kTagBytes = 16;

    // NOT_SUPPORTED: the processor has no AES instructions.
    static Result<FrameCipher> make(const DirectionKey& key);
    FrameCipher(FrameCipher&&) noexcept;
    FrameCipher& operator=(FrameCipher&&) noexcept;
    ~FrameCipher();

    // `associated` is not encrypted, but has to be the same at the other end.
    void begin(std::span<const std::byte> associated) noexcept;
    // `to` may be `from`, and else does not overlap it.
    void seal(const std::byte* from, std::byte* to, size_t bytes) noexcept;
    void end_sealing(std::byte* tag) noexcept;
    void open(const std::byte* from, std::byte* to, size_t bytes) noexcept;
    // Whether it is what the other end has sealed.  Not before this may be believed what was
    // opened.
    [[nodiscard]] bool end_opening(const std::byte* tag) noexcept;

private:
    struct State;
    explicit FrameCipher(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace hanare::fabric
