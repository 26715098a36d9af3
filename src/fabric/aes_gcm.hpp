// SPDX-License-Identifier: Apache-2.0
//
// AesGcm: AES-256-GCM (NIST SP 800-38D; libipsec-mb) under one key.  Messages as a whole, or in
// pieces by a Context of their own.  No nonce may be used for two messages, which is the caller's
// part.
//
// Nothing changes after make(), so any number of threads use it at once.  All but make() and the
// end is async-signal-safe: it neither allocates nor locks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/result.hpp"

namespace hanare::fabric {

class AesGcm {
public:
    static constexpr size_t kKeyBytes = 32;
    static constexpr size_t kNonceBytes = 12;
    static constexpr size_t kTagBytes = 16;
    using Nonce = std::span<const std::byte, kNonceBytes>;

    // NOT_SUPPORTED: the processor has no AES instructions.
    static Result<AesGcm> make(std::span<const std::byte, kKeyBytes> key);
    AesGcm(AesGcm&&) noexcept;
    AesGcm& operator=(AesGcm&&) noexcept;
    ~AesGcm();  // wipes the key

    // `associated` is not encrypted, but has to be the same when it is opened.  `to` may be `from`,
    // and else does not overlap it.
    void seal(Nonce nonce, std::span<const std::byte> associated, const std::byte* from,
              std::byte* to, size_t bytes, std::byte* tag) const noexcept;
    // Whether it is what was sealed.  If not, what was opened may not be used for anything.
    [[nodiscard]] bool open(Nonce nonce, std::span<const std::byte> associated,
                            const std::byte* from, std::byte* to, size_t bytes,
                            const std::byte* tag) const noexcept;

    // Of one message that is worked on in pieces, from begin() to the end.
    struct Context {
        alignas(64) std::byte state[128];
    };
    void begin(Context& context, Nonce nonce, std::span<const std::byte> associated) const noexcept;
    void seal_piece(Context& context, const std::byte* from, std::byte* to,
                    size_t bytes) const noexcept;
    void end_sealing(Context& context, std::byte* tag) const noexcept;
    void open_piece(Context& context, const std::byte* from, std::byte* to,
                    size_t bytes) const noexcept;
    [[nodiscard]] bool end_opening(Context& context, const std::byte* tag) const noexcept;

private:
    struct State;
    explicit AesGcm(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace hanare::fabric
