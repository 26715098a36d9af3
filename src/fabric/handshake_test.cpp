// SPDX-License-Identifier: Apache-2.0
#include "fabric/handshake.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::fabric {
namespace {

constexpr int kPatienceMs = 10'000;

struct Connected {
    Connected() {
        const sys::FileDescriptor listener = sys::listen_tcp("127.0.0.1", 0).value();
        const uint16_t port = sys::port_of(listener).value();
        source = sys::connect_tcp("127.0.0.1", port, kPatienceMs).value();
        sys::wait_for_socket(listener.number(), {.to_read = true}, kPatienceMs);
        target = sys::accept_tcp(listener);
    }
    sys::FileDescriptor source;
    sys::FileDescriptor target;
};

bool same(const DirectionKey& a, const DirectionKey& b) {
    return a.key == b.key && a.nonce == b.nonce;
}

TEST(Handshake, BothHaveTheKeysAndNobodyElse) {
    const Secret secret = Secret::make().value();
    SessionKeys keys[2];
    for (SessionKeys& each : keys) {
        Connected pair;
        auto target = std::async(std::launch::async, [&] {
            return shake_hands(Handshake::Side::kTarget, pair.target.number(), secret,
                               Protection::kSealed, kPatienceMs);
        });
        const auto source = shake_hands(Handshake::Side::kSource, pair.source.number(), secret,
                                        Protection::kSealed, kPatienceMs);
        ASSERT_TRUE(source) << source.error().text;
        const auto at_target = target.get();
        ASSERT_TRUE(at_target) << at_target.error().text;
        EXPECT_TRUE(same(source->to_source, at_target->to_source));
        EXPECT_TRUE(same(source->to_target, at_target->to_target));
        EXPECT_FALSE(same(source->to_source, source->to_target));
        each = *source;
        // Nothing of it is left on the connection.
        std::byte more[16];
        const sys::Part part = {more, sizeof more};
        EXPECT_EQ(sys::receive_parts(pair.source.number(), {&part, 1}), -EAGAIN);
        EXPECT_EQ(sys::receive_parts(pair.target.number(), {&part, 1}), -EAGAIN);
    }
    EXPECT_FALSE(same(keys[0].to_target, keys[1].to_target));
}

TEST(Handshake, StrangersAreRecognisedByBoth) {
    Connected pair;
    auto target = std::async(std::launch::async, [&] {
        auto keys = shake_hands(Handshake::Side::kTarget, pair.target.number(),
                                Secret::make().value(), Protection::kSealed, kPatienceMs);
        sys::shut_down(pair.target.number());
        return keys;
    });
    const auto source = shake_hands(Handshake::Side::kSource, pair.source.number(),
                                    Secret::make().value(), Protection::kSealed, kPatienceMs);
    ASSERT_FALSE(source);
    EXPECT_EQ(source.error().status, HANARE_STATUS_BAD_KEY);
    const auto at_target = target.get();
    ASSERT_FALSE(at_target);
    EXPECT_EQ(at_target.error().status, HANARE_STATUS_BAD_KEY);
}

// A target with several secrets tells whose a source is, which does not tell more by that.
TEST(Handshake, OneOfSeveralSecrets) {
    const std::vector<Secret> secrets = {Secret::make().value(), Secret::make().value(),
                                         Secret::make().value()};
    for (size_t number = 0; number <= secrets.size(); ++number) {
        const bool is_known = number < secrets.size();
        const Secret own = is_known ? secrets[number] : Secret::make().value();
        Connected pair;
        auto target = std::async(std::launch::async, [&] {
            Handshake handshake =
                Handshake::begin_target(pair.target.number(), secrets, Protection::kSealed).value();
            Handshake::State state = Handshake::State::kWaitsToRead;
            while ((state = handshake.go_on()) == Handshake::State::kWaitsToRead) {
                sys::wait_for_socket(pair.target.number(), {.to_read = true}, kPatienceMs);
            }
            auto keys = handshake.keys();
            sys::shut_down(pair.target.number());
            return std::tuple(state, handshake.secret_number(), std::move(keys));
        });
        const auto source = shake_hands(Handshake::Side::kSource, pair.source.number(), own,
                                        Protection::kSealed, kPatienceMs);
        const auto [state, found, keys] = target.get();
        ASSERT_EQ(source.has_value(), is_known) << number;
        EXPECT_EQ(state, is_known ? Handshake::State::kDone : Handshake::State::kStranger);
        if (!is_known) {
            EXPECT_EQ(source.error().status, HANARE_STATUS_BAD_KEY);
            continue;
        }
        EXPECT_EQ(found, number);
        ASSERT_TRUE(keys);
        EXPECT_TRUE(same(source->to_target, keys->to_target));
    }
}

// The source says how much it wants, and gets no less; the target no less than it accepts.
TEST(Handshake, Protections) {
    constexpr auto kLess = Protection::kAuthenticated;
    constexpr auto kBetween = Protection::kSealedButData;
    constexpr auto kMore = Protection::kSealed;
    const Secret secret = Secret::make().value();
    for (const auto& [wanted, least, agreed] : {std::tuple(kLess, kLess, true),
                                                {kMore, kLess, true},
                                                {kMore, kMore, true},
                                                {kLess, kMore, false},
                                                {kBetween, kLess, true},
                                                {kBetween, kBetween, true},
                                                {kMore, kBetween, true},
                                                {kLess, kBetween, false},
                                                {kBetween, kMore, false}}) {
        Connected pair;
        auto target = std::async(std::launch::async, [&, least = least] {
            Handshake handshake =
                Handshake::begin(Handshake::Side::kTarget, pair.target.number(), secret, least)
                    .value();
            Handshake::State state = Handshake::State::kWaitsToRead;
            while ((state = handshake.go_on()) == Handshake::State::kWaitsToRead) {
                sys::wait_for_socket(pair.target.number(), {.to_read = true}, kPatienceMs);
            }
            return std::pair(state, handshake.protection());
        });
        const auto source = shake_hands(Handshake::Side::kSource, pair.source.number(), secret,
                                        wanted, kPatienceMs);
        const auto [state, protection] = target.get();
        EXPECT_EQ(source.has_value(), agreed);
        EXPECT_EQ(state, agreed ? Handshake::State::kDone : Handshake::State::kStranger);
        if (agreed) {
            EXPECT_EQ(protection, wanted);
        }
    }
}

TEST(Handshake, SilentAndClosedPeers) {
    Connected pair;
    const Secret secret = Secret::make().value();
    const auto silent = shake_hands(Handshake::Side::kSource, pair.source.number(), secret,
                                    Protection::kSealed, 20);
    ASSERT_FALSE(silent);
    EXPECT_EQ(silent.error().status, HANARE_STATUS_TIMEOUT);
    Connected other;
    other.target.close();
    const auto closed = shake_hands(Handshake::Side::kSource, other.source.number(), secret,
                                    Protection::kSealed, kPatienceMs);
    ASSERT_FALSE(closed);
    EXPECT_EQ(closed.error().status, HANARE_STATUS_PEER_LOST);
}

TEST(Handshake, Nonsense) {
    Prng prng(3);
    const Secret secret = Secret::make().value();
    for (int round = 0; round < 50; ++round) {
        Connected pair;
        std::byte bytes[64];
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(prng.next());
        if (round % 2 == 0) std::memcpy(bytes, "\x16\x03\x01\x00\x30", 5);  // as TLS begins
        const sys::Part part = {bytes, sizeof bytes};
        ASSERT_EQ(sys::send_parts(pair.source.number(), {&part, 1}), sizeof bytes);
        ASSERT_EQ(shutdown(pair.source.number(), SHUT_WR), 0);
        const auto keys = shake_hands(Handshake::Side::kTarget, pair.target.number(), secret,
                                      Protection::kSealed, kPatienceMs);
        ASSERT_FALSE(keys);
        EXPECT_TRUE(keys.error().status == HANARE_STATUS_BAD_KEY ||
                    keys.error().status == HANARE_STATUS_PEER_LOST)
            << keys.error().text;
    }
}

}  // namespace
}  // namespace hanare::fabric
