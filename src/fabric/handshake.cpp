// SPDX-License-Identifier: Apache-2.0
#include "fabric/handshake.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "sys/clock.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::fabric {
namespace {

// Which key it is; the binder of the handshake covers it, so that nobody can change it on the way.
constexpr struct {
    Protection protection;
    std::string_view name;
} kNames[] = {{Protection::kAuthenticated, "hanare/1 authenticated"},
              {Protection::kSealedButData, "hanare/1 sealed but data"},
              {Protection::kSealed, "hanare/1 sealed"}};
constexpr std::string_view kExporterLabel = "EXPERIMENTAL hanare/1 keys";
constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
constexpr uint64_t kNsPerMs = 1'000'000;

template <auto Free>
struct Freer {
    template <typename T>
    void operator()(T* object) const noexcept {
        Free(object);
    }
};
using Context = std::unique_ptr<SSL_CTX, Freer<SSL_CTX_free>>;
using Ssl = std::unique_ptr<SSL, Freer<SSL_free>>;
using PreShared = std::unique_ptr<SSL_SESSION, Freer<SSL_SESSION_free>>;

// A BIO over a socket that is used as everywhere here: without SIGPIPE, and OpenSSL's own reads
// exactly the records that it needs.
int socket_of(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

int bio_write(BIO* bio, const char* data, int bytes) {
    BIO_clear_retry_flags(bio);
    // Sending does not write.
    const sys::Part part = {reinterpret_cast<std::byte*>(const_cast<char*>(data)),
                            static_cast<size_t>(bytes)};
    const ptrdiff_t moved = sys::send_parts(socket_of(bio), {&part, 1});
    if (moved == -EAGAIN) BIO_set_retry_write(bio);
    return moved < 0 ? -1 : static_cast<int>(moved);
}

int bio_read(BIO* bio, char* data, int bytes) {
    BIO_clear_retry_flags(bio);
    const sys::Part part = {reinterpret_cast<std::byte*>(data), static_cast<size_t>(bytes)};
    const ptrdiff_t moved = sys::receive_parts(socket_of(bio), {&part, 1});
    if (moved == -EAGAIN) BIO_set_retry_read(bio);
    return moved < 0 ? -1 : static_cast<int>(moved);
}

long bio_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

using Method = std::unique_ptr<BIO_METHOD, Freer<BIO_meth_free>>;

Method make_method() {
    Method method(BIO_meth_new(BIO_TYPE_SOURCE_SINK, "hanare"));
    if (method != nullptr) {
        BIO_meth_set_write(method.get(), bio_write);
        BIO_meth_set_read(method.get(), bio_read);
        BIO_meth_set_ctrl(method.get(), bio_control);
    }
    return method;
}

struct Agreement {
    std::vector<Secret> secrets;  // a source has one
    Protection protection;        // of the target: the least, until it knows what the source wants
    size_t number = 0;            // of the secret that is used
    std::string identity = {};    // that the source has sent
};

// By what a target that has several secrets finds the source's: nobody can tell more from it.
std::string fingerprint_of(const Secret& secret) {
    constexpr std::string_view kPurpose = "hanare/1 which secret";
    constexpr size_t kBytes = 8;
    std::array<unsigned char, EVP_MAX_MD_SIZE> code{};
    unsigned int bytes = 0;
    HMAC(EVP_sha256(), secret.bytes().data(), static_cast<int>(secret.bytes().size()),
         reinterpret_cast<const unsigned char*>(kPurpose.data()), kPurpose.size(), code.data(),
         &bytes);
    std::string text;
    for (size_t i = 0; i < kBytes; ++i) {
        constexpr std::string_view kDigits = "0123456789abcdef";
        text += kDigits[code[i] >> 4];
        text += kDigits[code[i] & 15];
    }
    return text;
}

Agreement& agreement_of(SSL* ssl) { return *static_cast<Agreement*>(SSL_get_app_data(ssl)); }

// The secret in the form in which OpenSSL takes a pre-shared key.
SSL_SESSION* session_of(SSL* ssl) {
    PreShared session(SSL_SESSION_new());
    const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl, kAes128GcmSha256);
    const Agreement& agreement = agreement_of(ssl);
    const auto secret = agreement.secrets[agreement.number].bytes();
    if (session == nullptr || cipher == nullptr ||
        SSL_SESSION_set1_master_key(session.get(),
                                    reinterpret_cast<const unsigned char*>(secret.data()),
                                    secret.size()) != 1 ||
        SSL_SESSION_set_cipher(session.get(), cipher) != 1 ||
        SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) != 1) {
        return nullptr;
    }
    return session.release();
}

int use_secret(SSL* ssl, const EVP_MD*, const unsigned char** identity, size_t* identity_bytes,
               SSL_SESSION** session) {
    Agreement& agreement = agreement_of(ssl);
    for (const auto& [protection, name] : kNames) {
        if (protection == agreement.protection) agreement.identity = name;
    }
    agreement.identity += " " + fingerprint_of(agreement.secrets.front());
    *session = session_of(ssl);
    *identity = reinterpret_cast<const unsigned char*>(agreement.identity.data());
    *identity_bytes = agreement.identity.size();
    return *session != nullptr ? 1 : 0;
}

// Who has none of them learns it from what follows.
size_t number_of(const std::vector<Secret>& secrets, std::string_view end_of_identity) {
    for (size_t i = 1; i < secrets.size(); ++i) {
        if (end_of_identity == " " + fingerprint_of(secrets[i])) return i;
    }
    return 0;
}

int find_secret(SSL* ssl, const unsigned char* identity, size_t identity_bytes,
                SSL_SESSION** session) {
    const std::string_view whole(reinterpret_cast<const char*>(identity), identity_bytes);
    const std::string_view named = whole.substr(0, whole.rfind(' '));
    Agreement& agreement = agreement_of(ssl);
    agreement.number = number_of(agreement.secrets, whole.substr(named.size()));
    *session = nullptr;
    for (const auto& [protection, name] : kNames) {
        if (name != named || protection < agreement.protection) continue;
        agreement.protection = protection;
        *session = session_of(ssl);
        break;
    }
    return 1;
}

Result<Context> make_context(Handshake::Side side) {
    Context context(
        SSL_CTX_new(side == Handshake::Side::kSource ? TLS_client_method() : TLS_server_method()));
    if (context != nullptr && SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1 &&
        SSL_CTX_set_ciphersuites(context.get(), "TLS_AES_128_GCM_SHA256") == 1 &&
        SSL_CTX_set_num_tickets(context.get(), 0) == 1) {
        // There are no certificates: a target without the secret has nothing else to offer.
        if (side == Handshake::Side::kSource) {
            SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
        }
        SSL_CTX_set_psk_use_session_callback(context.get(), use_secret);
        SSL_CTX_set_psk_find_session_callback(context.get(), find_secret);
        return context;
    }
    ERR_clear_error();
    return fail(HANARE_STATUS_SYSTEM, "OpenSSL offers no TLS 1.3 with AES-128-GCM");
}

}  // namespace

struct Handshake::Session {
    Agreement agreement;
    Method method;
    Context context;
    Ssl ssl;
};

Handshake::Handshake(std::unique_ptr<Session> session) : session_(std::move(session)) {}
Handshake::Handshake(Handshake&&) noexcept = default;
Handshake::~Handshake() = default;

Result<Handshake> Handshake::begin(Side side, int socket, const Secret& secret,
                                   Protection protection) {
    return begin(side, socket, std::span(&secret, 1), protection);
}

Result<Handshake> Handshake::begin_target(int socket, std::span<const Secret> secrets,
                                          Protection protection) {
    return begin(Side::kTarget, socket, secrets, protection);
}

Result<Handshake> Handshake::begin(Side side, int socket, std::span<const Secret> secrets,
                                   Protection protection) {
    HANARE_TRY_ASSIGN(Context context, make_context(side));
    auto session = std::make_unique<Session>(
        Session{{.secrets = {secrets.begin(), secrets.end()}, .protection = protection},
                make_method(),
                std::move(context),
                nullptr});
    session->ssl.reset(SSL_new(session->context.get()));
    SSL* const ssl = session->ssl.get();
    BIO* const bio = session->method != nullptr ? BIO_new(session->method.get()) : nullptr;
    if (ssl == nullptr || bio == nullptr) {
        BIO_free(bio);
        ERR_clear_error();
        return fail(HANARE_STATUS_NO_MEMORY, "OpenSSL cannot begin a handshake");
    }
    BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(socket)));
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    SSL_set_app_data(ssl, &session->agreement);
    if (side == Side::kSource) {
        SSL_set_connect_state(ssl);
    } else {
        SSL_set_accept_state(ssl);
    }
    return Handshake(std::move(session));
}

Handshake::State Handshake::go_on() {
    SSL* const ssl = session_->ssl.get();
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl);
    if (result == 1) {
        // Without the secret there would be a certificate, which nobody can have here.
        return SSL_session_reused(ssl) == 1 ? State::kDone : State::kStranger;
    }
    const int error = SSL_get_error(ssl, result);
    const bool is_protocol = ERR_peek_error() != 0;
    ERR_clear_error();
    switch (error) {
        case SSL_ERROR_WANT_READ: return State::kWaitsToRead;
        case SSL_ERROR_WANT_WRITE: return State::kWaitsToWrite;
        case SSL_ERROR_SSL: return is_protocol ? State::kStranger : State::kLost;
        default: return State::kLost;
    }
}

Protection Handshake::protection() const noexcept { return session_->agreement.protection; }

size_t Handshake::secret_number() const noexcept { return session_->agreement.number; }

Result<SessionKeys> Handshake::keys() const {
    SessionKeys keys;
    std::array<std::byte, 2 * (32 + 12)> material;
    if (SSL_export_keying_material(
            session_->ssl.get(), reinterpret_cast<unsigned char*>(material.data()), material.size(),
            kExporterLabel.data(), kExporterLabel.size(), nullptr, 0, 0) != 1) {
        ERR_clear_error();
        return fail(HANARE_STATUS_INTERNAL, "OpenSSL exports no keys");
    }
    const std::byte* at = material.data();
    for (DirectionKey* const each : {&keys.to_target, &keys.to_source}) {
        std::copy_n(at, each->key.size(), each->key.begin());
        std::copy_n(at + each->key.size(), each->nonce.size(), each->nonce.begin());
        at += each->key.size() + each->nonce.size();
    }
    explicit_bzero(material.data(), material.size());
    return keys;
}

Result<SessionKeys> shake_hands(Handshake::Side side, int socket, const Secret& secret,
                                Protection protection, int timeout_ms) {
    HANARE_TRY_ASSIGN(Handshake handshake, Handshake::begin(side, socket, secret, protection));
    const uint64_t end_ns =
        timeout_ms < 0 ? UINT64_MAX : sys::now_ns() + static_cast<uint64_t>(timeout_ms) * kNsPerMs;
    for (;;) {
        const Handshake::State state = handshake.go_on();
        switch (state) {
            case Handshake::State::kDone: return handshake.keys();
            case Handshake::State::kStranger:
                return fail(HANARE_STATUS_BAD_KEY,
                            "the peer does not know the job's secret, or "
                            "accepts only sealed connections");
            case Handshake::State::kLost:
                return fail(HANARE_STATUS_PEER_LOST, "the peer has ended the handshake");
            default: break;
        }
        const uint64_t now = sys::now_ns();
        if (now >= end_ns) {
            return fail(HANARE_STATUS_TIMEOUT, "no handshake within %d ms", timeout_ms);
        }
        const bool reads = state == Handshake::State::kWaitsToRead;
        sys::wait_for_socket(socket, {.to_read = reads, .to_write = !reads},
                             timeout_ms < 0 ? -1 : static_cast<int>((end_ns - now) / kNsPerMs) + 1);
    }
}

}  // namespace hanare::fabric
