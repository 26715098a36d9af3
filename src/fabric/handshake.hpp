// SPDX-License-Identifier: Apache-2.0
//
// Handshake: how the two ends of a new connection convince each other that they belong to one job,
// and agree on keys that nobody else can have, not even who learns the secret later: TLS 1.3 with
// an external pre-shared key and ephemeral Diffie-Hellman (RFC 8446, sections 2.2 and 4.2.9;
// OpenSSL). What follows on the connection is not TLS: the keys come from its exporter
// (section 7.5).
//
// By one thread; allocates; never waits.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "fabric/secret.hpp"

namespace hanare::fabric {

// Of one direction.
struct DirectionKey {
    std::array<std::byte, 32> key = {};  // AES-256
    std::array<std::byte, 12> nonce = {};

    ~DirectionKey() { explicit_bzero(key.data(), key.size()); }
};
struct SessionKeys {
    DirectionKey to_target;
    DirectionKey to_source;
};

// What a connection is protected from afterwards.
enum class Protection {
    kAuthenticated,  // from strangers and accidents, not from who can read or change what passes
    // From these, too, but for the data of larger puts and gets (is_data()), which goes as it is:
    // for who puts only what is sealed by itself.
    kSealedButData,
    kSealed,  // every frame is encrypted and authenticated
};

class Handshake {
public:
    enum class Side { kSource, kTarget };

    // The source names the protection, the target the least that it accepts.  The socket stays the
    // caller's and open.
    static Result<Handshake> begin(Side side, int socket, const Secret& secret,
                                   Protection protection);
    // A target that knows several, at least one: the source says which one it has.
    static Result<Handshake> begin_target(int socket, std::span<const Secret> secrets,
                                          Protection protection);
    Handshake(Handshake&&) noexcept;
    ~Handshake();

    enum class State {
        kWaitsToRead,
        kWaitsToWrite,
        kDone,
        kStranger,  // the peer does not know the secret, wants other protection, or talks nonsense
        kLost,      // the connection has ended
    };
    // Goes on as far as it can without waiting.
    State go_on();

    // Once it is done.
    Result<SessionKeys> keys() const;
    Protection protection() const noexcept;
    // Which of several the source has.
    size_t secret_number() const noexcept;

private:
    struct Session;
    static Result<Handshake> begin(Side side, int socket, std::span<const Secret> secrets,
                                   Protection protection);
    explicit Handshake(std::unique_ptr<Session> session);
    std::unique_ptr<Session> session_;
};

// All of it, with waiting: BAD_KEY, PEER_LOST, TIMEOUT.
Result<SessionKeys> shake_hands(Handshake::Side side, int socket, const Secret& secret,
                                Protection protection, int timeout_ms);

}  // namespace hanare::fabric
