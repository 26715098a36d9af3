// SPDX-License-Identifier: Apache-2.0
#include "fabric/aes_gcm.hpp"

#include <intel-ipsec-mb.h>

#include <array>
#include <cstring>
#include <utility>

namespace hanare::fabric {
namespace {

struct ManagerFreer {
    void operator()(IMB_MGR* manager) const noexcept { free_mb_mgr(manager); }
};
using Manager = std::unique_ptr<IMB_MGR, ManagerFreer>;

// The code for this processor.  These functions of the library know nothing but their arguments,
// unlike its jobs, whose queues are why a manager is large and nobody's but one thread's.
struct Code {
    explicit Code(const IMB_MGR& manager)
        : seal(manager.gcm256_enc),
          open(manager.gcm256_dec),
          begin(manager.gcm256_init),
          seal_piece(manager.gcm256_enc_update),
          end_sealing(manager.gcm256_enc_finalize),
          open_piece(manager.gcm256_dec_update),
          end_opening(manager.gcm256_dec_finalize) {}

    aes_gcm_enc_dec_t seal;
    aes_gcm_enc_dec_t open;
    aes_gcm_init_t begin;
    aes_gcm_enc_dec_update_t seal_piece;
    aes_gcm_enc_dec_finalize_t end_sealing;
    aes_gcm_enc_dec_update_t open_piece;
    aes_gcm_enc_dec_finalize_t end_opening;
};

uint8_t* octets(std::byte* bytes) { return reinterpret_cast<uint8_t*>(bytes); }
const uint8_t* octets(const std::byte* bytes) { return reinterpret_cast<const uint8_t*>(bytes); }

using Tag = std::array<std::byte, AesGcm::kTagBytes>;

// In a time that does not depend on where they differ.
bool are_equal(const Tag& expected, const std::byte* tag) {
    std::byte differences{0};
    for (size_t i = 0; i < expected.size(); ++i) differences |= expected[i] ^ tag[i];
    return differences == std::byte{0};
}

gcm_context_data* context_of(AesGcm::Context& context) {
    static_assert(sizeof(gcm_context_data) <= sizeof context.state);
    return reinterpret_cast<gcm_context_data*>(context.state);
}

}  // namespace

struct AesGcm::State {
    explicit State(const IMB_MGR& manager) : code(manager) {}
    ~State() { explicit_bzero(&key, sizeof key); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    const Code code;
    alignas(64) gcm_key_data key = {};
};

AesGcm::AesGcm(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
AesGcm::AesGcm(AesGcm&&) noexcept = default;
AesGcm& AesGcm::operator=(AesGcm&&) noexcept = default;
AesGcm::~AesGcm() = default;

Result<AesGcm> AesGcm::make(std::span<const std::byte, kKeyBytes> key) {
    const Manager manager(alloc_mb_mgr(0));
    if (manager == nullptr) return fail(HANARE_STATUS_NO_MEMORY, "no memory for a cipher");
    IMB_ARCH found = IMB_ARCH_NONE;
    init_mb_mgr_auto(manager.get(), &found);
    // Below SSE the library would do without the AES instructions.
    if (found < IMB_ARCH_SSE) {
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "encryption needs a processor with AES instructions");
    }
    auto state = std::make_unique<State>(*manager);
    IMB_AES256_GCM_PRE(manager.get(), key.data(), &state->key);
    return AesGcm(std::move(state));
}

void AesGcm::seal(Nonce nonce, std::span<const std::byte> associated, const std::byte* from,
                  std::byte* to, size_t bytes, std::byte* tag) const noexcept {
    Context context;
    state_->code.seal(&state_->key, context_of(context), octets(to), octets(from), bytes,
                      octets(nonce.data()), octets(associated.data()), associated.size(),
                      octets(tag), kTagBytes);
}

bool AesGcm::open(Nonce nonce, std::span<const std::byte> associated, const std::byte* from,
                  std::byte* to, size_t bytes, const std::byte* tag) const noexcept {
    Context context;
    Tag expected;
    state_->code.open(&state_->key, context_of(context), octets(to), octets(from), bytes,
                      octets(nonce.data()), octets(associated.data()), associated.size(),
                      octets(expected.data()), kTagBytes);
    return are_equal(expected, tag);
}

void AesGcm::begin(Context& context, Nonce nonce,
                   std::span<const std::byte> associated) const noexcept {
    state_->code.begin(&state_->key, context_of(context), octets(nonce.data()),
                       octets(associated.data()), associated.size());
}

void AesGcm::seal_piece(Context& context, const std::byte* from, std::byte* to,
                        size_t bytes) const noexcept {
    if (bytes == 0) return;
    state_->code.seal_piece(&state_->key, context_of(context), octets(to), octets(from), bytes);
}

void AesGcm::end_sealing(Context& context, std::byte* tag) const noexcept {
    state_->code.end_sealing(&state_->key, context_of(context), octets(tag), kTagBytes);
}

void AesGcm::open_piece(Context& context, const std::byte* from, std::byte* to,
                        size_t bytes) const noexcept {
    if (bytes == 0) return;
    state_->code.open_piece(&state_->key, context_of(context), octets(to), octets(from), bytes);
}

bool AesGcm::end_opening(Context& context, const std::byte* tag) const noexcept {
    Tag expected;
    state_->code.end_opening(&state_->key, context_of(context), octets(expected.data()), kTagBytes);
    return are_equal(expected, tag);
}

}  // namespace hanare::fabric
