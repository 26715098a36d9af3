// SPDX-License-Identifier: Apache-2.0
#include "fabric/frame_cipher.hpp"

#include <utility>

#include "fabric/aes_gcm.hpp"

namespace hanare::fabric {

static_assert(FrameCipher::kTagBytes == AesGcm::kTagBytes);

struct FrameCipher::State {
    const AesGcm cipher;
    AesGcm::Context context;
    std::array<std::byte, AesGcm::kNonceBytes> nonce = {};
    uint64_t frames = 0;
};

FrameCipher::FrameCipher(std::unique_ptr<State> state) : state_(std::move(state)) {}
FrameCipher::FrameCipher(FrameCipher&&) noexcept = default;
FrameCipher& FrameCipher::operator=(FrameCipher&&) noexcept = default;
FrameCipher::~FrameCipher() = default;

Result<FrameCipher> FrameCipher::make(const DirectionKey& key) {
    HANARE_TRY_ASSIGN(AesGcm cipher, AesGcm::make(key.key));
    return FrameCipher(std::unique_ptr<State>(
        new State{.cipher = std::move(cipher), .context = {}, .nonce = key.nonce}));
}

void FrameCipher::begin(std::span<const std::byte> associated) noexcept {
    // As TLS 1.3 does (RFC 8446, section 5.3).
    std::array<std::byte, AesGcm::kNonceBytes> nonce = state_->nonce;
    for (size_t i = 0; i < sizeof state_->frames; ++i) {
        nonce[nonce.size() - 1 - i] ^= static_cast<std::byte>(state_->frames >> (8 * i));
    }
    ++state_->frames;
    state_->cipher.begin(state_->context, nonce, associated);
}

void FrameCipher::seal(const std::byte* from, std::byte* to, size_t bytes) noexcept {
    state_->cipher.seal_piece(state_->context, from, to, bytes);
}

void FrameCipher::end_sealing(std::byte* tag) noexcept {
    state_->cipher.end_sealing(state_->context, tag);
}

void FrameCipher::open(const std::byte* from, std::byte* to, size_t bytes) noexcept {
    state_->cipher.open_piece(state_->context, from, to, bytes);
}

bool FrameCipher::end_opening(const std::byte* tag) noexcept {
    return state_->cipher.end_opening(state_->context, tag);
}

}  // namespace hanare::fabric
