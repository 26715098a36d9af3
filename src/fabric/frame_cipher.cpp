// SPDX-License-Identifier: Apache-2.0
#include "fabric/frame_cipher.hpp"

#include <intel-ipsec-mb.h>

#include <cstring>
#include <utility>

namespace hanare::fabric {
namespace {

struct ManagerFreer {
    void operator()(IMB_MGR* manager) const noexcept { free_mb_mgr(manager); }
};
using Manager = std::unique_ptr<IMB_MGR, ManagerFreer>;

}  // namespace

struct FrameCipher::State {
    explicit State(Manager with) : manager(std::move(with)) {}
    ~State() { explicit_bzero(&key, sizeof key); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    const Manager manager;  // the code for this processor
    alignas(64) gcm_key_data key = {};
    alignas(64) gcm_context_data context = {};
    std::array<std::byte, 12> nonce = {};
    uint64_t frames = 0;
};

FrameCipher::FrameCipher(std::unique_ptr<State> state) : state_(std::move(state)) {}
FrameCipher::FrameCipher(FrameCipher&&) noexcept = default;
FrameCipher& FrameCipher::operator=(FrameCipher&&) noexcept = default;
FrameCipher::~FrameCipher() = default;

Result<FrameCipher> FrameCipher::make(const DirectionKey& key) {
    Manager manager(alloc_mb_mgr(0));
    if (manager == nullptr) return fail(HANARE_STATUS_NO_MEMORY, "no memory for a cipher");
    IMB_ARCH found = IMB_ARCH_NONE;
    init_mb_mgr_auto(manager.get(), &found);
    // Below SSE the library would do without the AES instructions.
    if (found < IMB_ARCH_SSE) {
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "encryption needs a processor with AES instructions");
    }
    auto state = std::make_unique<State>(std::move(manager));
    IMB_AES256_GCM_PRE(state->manager.get(), key.key.data(), &state->key);
    state->nonce = key.nonce;
    return FrameCipher(std::move(state));
}

void FrameCipher::begin(std::span<const std::byte> associated) noexcept {
    // As TLS 1.3 does (RFC 8446, section 5.3).
    std::array<std::byte, 12> nonce = state_->nonce;
    for (size_t i = 0; i < sizeof state_->frames; ++i) {
        nonce[nonce.size() - 1 - i] ^= static_cast<std::byte>(state_->frames >> (8 * i));
    }
    ++state_->frames;
    IMB_AES256_GCM_INIT(state_->manager.get(), &state_->key, &state_->context,
                        reinterpret_cast<const uint8_t*>(nonce.data()),
                        reinterpret_cast<const uint8_t*>(associated.data()), associated.size());
}

void FrameCipher::seal(const std::byte* from, std::byte* to, size_t bytes) noexcept {
    if (bytes == 0) return;
    IMB_AES256_GCM_ENC_UPDATE(state_->manager.get(), &state_->key, &state_->context,
                              reinterpret_cast<uint8_t*>(to),
                              reinterpret_cast<const uint8_t*>(from), bytes);
}

void FrameCipher::end_sealing(std::byte* tag) noexcept {
    IMB_AES256_GCM_ENC_FINALIZE(state_->manager.get(), &state_->key, &state_->context,
                                reinterpret_cast<uint8_t*>(tag), kTagBytes);
}

void FrameCipher::open(const std::byte* from, std::byte* to, size_t bytes) noexcept {
    if (bytes == 0) return;
    IMB_AES256_GCM_DEC_UPDATE(state_->manager.get(), &state_->key, &state_->context,
                              reinterpret_cast<uint8_t*>(to),
                              reinterpret_cast<const uint8_t*>(from), bytes);
}

bool FrameCipher::end_opening(const std::byte* tag) noexcept {
    std::byte expected[kTagBytes];
    IMB_AES256_GCM_DEC_FINALIZE(state_->manager.get(), &state_->key, &state_->context,
                                reinterpret_cast<uint8_t*>(expected), kTagBytes);
    // In a time that does not depend on where they differ.
    std::byte differences{0};
    for (size_t i = 0; i < kTagBytes; ++i) differences |= expected[i] ^ tag[i];
    return differences == std::byte{0};
}

}  // namespace hanare::fabric
