// SPDX-License-Identifier: Apache-2.0
//
// TcpLink against a TcpService that serves only who knows its secret, with somebody in between who
// changes what passes.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/units.hpp"
#include "fabric/tcp_link.hpp"
#include "fabric/tcp_service.hpp"
#include "fabric/test_calls.hpp"
#include "sys/local_socket.hpp"

namespace hanare::fabric {
namespace {

constexpr uint32_t kSpinUs = 20;
constexpr int kConnectMs = 5000;
const std::string kLocalAddress = "@hanare-fabric-secret-test-" + std::to_string(getpid());
// What a source sends as the last of a handshake: ChangeCipherSpec and Finished (RFC 8446, D.4).
constexpr size_t kFinishedBytes = 6 + 5 + 4 + 32 + 1 + 16;

// Only who knows the secret is served.
class TcpSecret : public testing::Test {
protected:
    ~TcpSecret() override { service->stop(); }
    Result<std::unique_ptr<TcpLink>> connect(const std::optional<Secret>& with) const {
        return TcpLink::connect({.host = "127.0.0.1",
                                 .port = service->port(),
                                 .secret = with,
                                 .spin_us = kSpinUs,
                                 .timeout_ms = kConnectMs});
    }

    std::vector<std::byte> memory = std::vector<std::byte>(100'000, std::byte{3});
    ExposedRegions regions;
    Capability read = regions.capability(regions.expose(memory, kRead).value(), kRead).value();
    const Secret secret = Secret::make().value();
    std::unique_ptr<TcpService> service =
        TcpService::open({.host = "127.0.0.1", .port = 0, .secret = secret, .spin_us = kSpinUs},
                         regions)
            .value();
    std::jthread thread{[this] { service->run(); }};
};

// Until one side ends.  Of what the source sends after its handshake (whose last message the target
// does not answer) one byte is another.
void pass_on(int source, int target, size_t changed_byte) {
    std::vector<std::byte> room(200'000);
    size_t turns_of_target = 0;
    size_t passed = 0;
    for (;;) {
        pollfd both[2] = {{source, POLLIN, 0}, {target, POLLIN, 0}};
        if (poll(both, 2, kConnectMs) <= 0) return;
        for (int side = 0; side < 2; ++side) {
            if (both[side].revents == 0) continue;
            const ssize_t got = recv(both[side].fd, room.data(), room.size(), 0);
            if (got <= 0) return;
            auto bytes = std::span(room).first(static_cast<size_t>(got));
            if (side == 1) ++turns_of_target;
            if (side == 0 && turns_of_target > 0) {
                // The first is the end of the handshake.
                const size_t begin = passed;
                passed += bytes.size();
                const size_t at = kFinishedBytes + changed_byte;
                if (at >= begin && at < passed) bytes[at - begin] ^= std::byte{1};
            }
            size_t sent = 0;
            while (sent < bytes.size()) {
                pollfd other = {both[1 - side].fd, POLLOUT, 0};
                if (poll(&other, 1, kConnectMs) <= 0) return;
                const ssize_t moved =
                    send(other.fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
                if (moved < 0) return;
                sent += static_cast<size_t>(moved);
            }
        }
    }
}

TEST_F(TcpSecret, WhoKnowsItIsServed) {
    const auto link = connect(secret).value();
    std::vector<std::byte> seen(memory.size());
    EXPECT_EQ(run(*link, Get(read, 0, seen)), HANARE_STATUS_OK);
    EXPECT_TRUE(seen == memory);
}

TEST_F(TcpSecret, OthersAreNot) {
    const auto impostor = connect(Secret::make().value());
    ASSERT_FALSE(impostor);
    EXPECT_EQ(impostor.error().status, HANARE_STATUS_BAD_KEY);
    std::vector<std::byte> seen(10);
    EXPECT_EQ(run(*connect({}).value(), Get(read, 0, seen)), HANARE_STATUS_PEER_LOST);
    EXPECT_EQ(seen, std::vector<std::byte>(10));
}

TEST_F(TcpSecret, WhoSaysNothingHoldsUpNobody) {
    std::vector<sys::FileDescriptor> silent;
    for (size_t i = 0; i < TcpService::kStrangersMax + 20; ++i) {
        silent.push_back(sys::connect_tcp("127.0.0.1", service->port(), kConnectMs).value());
    }
    std::vector<std::byte> seen(10);
    EXPECT_EQ(run(*connect(secret).value(), Get(read, 0, seen)), HANARE_STATUS_OK);
    // The oldest were dropped.
    EXPECT_TRUE(
        sys::wait_for_socket(silent.front().number(), {.to_read = true}, kConnectMs).to_read);
}

TEST_F(TcpSecret, WhoSaysNothingHasToGo) {
    const std::string local = kLocalAddress + "-strangers";
    const auto impatient = TcpService::open({.host = "127.0.0.1",
                                             .port = 0,
                                             .local_address = local,
                                             .secret = secret,
                                             .stranger_timeout_ms = 20},
                                            regions)
                               .value();
    std::jthread serving([&] { impatient->run(); });
    const auto one = sys::connect_tcp("127.0.0.1", impatient->port(), kConnectMs).value();
    const auto two = sys::connect_local(local).value();
    for (const sys::FileDescriptor* silent : {&one, &two}) {
        EXPECT_TRUE(sys::wait_for_socket(silent->number(), {.to_read = true}, kConnectMs).to_read);
    }
    impatient->stop();
}

// In between somebody changes one bit of what passes: nothing of it gets anywhere, but for data
// that is left as it is.
class TcpChanged : public TcpSecret {
protected:
    void check(Protection protection);
};

void TcpChanged::check(Protection protection) {
    constexpr size_t kBytes = kRequestBytesMax + 100'000;
    std::vector<std::byte> there(kBytes);
    const Capability write =
        regions.capability(regions.expose(there, kWrite).value(), kWrite).value();
    const sys::FileDescriptor listener = sys::listen_tcp("127.0.0.1", 0).value();
    // Where data is left as it is, the first frame is that of one header, and so is the second.
    constexpr size_t kFirstData = kRequestBytesMax;
    constexpr size_t kSecondFrame = 4 + sizeof(RequestHeader) + 16 + kFirstData + 10;
    // The last one lies behind all of it.
    constexpr size_t kNone = 1 << 20;
    for (const size_t changed_byte :
         {size_t{2}, size_t{5}, size_t{60}, size_t{90}, size_t{50'000}, kSecondFrame, kNone}) {
        std::jthread between([&] {
            sys::wait_for_socket(listener.number(), {.to_read = true}, kConnectMs);
            const sys::FileDescriptor source = sys::accept_tcp(listener);
            const sys::FileDescriptor target =
                sys::connect_tcp("127.0.0.1", service->port(), kConnectMs).value();
            pass_on(source.number(), target.number(), changed_byte);
        });
        const auto link = TcpLink::connect({.host = "127.0.0.1",
                                            .port = sys::port_of(listener).value(),
                                            .secret = secret,
                                            .protection = protection,
                                            .spin_us = kSpinUs,
                                            .timeout_ms = kConnectMs})
                              .value();
        const std::vector<std::byte> data(kBytes, std::byte{1});
        const bool is_in_data = changed_byte == 50'000;
        const bool is_seen =
            changed_byte != kNone && (protection == Protection::kSealed || !is_in_data);
        EXPECT_EQ(run(*link, Put(write, 0, data)),
                  is_seen ? HANARE_STATUS_PEER_LOST : HANARE_STATUS_OK)
            << changed_byte;
        if (!is_seen) {
            EXPECT_EQ(std::ranges::count(there, std::byte{1}), is_in_data ? kBytes - 1 : kBytes);
            std::ranges::fill(there, std::byte{0});
            continue;
        }
        const auto untouched = changed_byte == kSecondFrame ? std::span(there).subspan(kFirstData)
                                                            : std::span(there).first(65'536);
        EXPECT_TRUE(std::ranges::all_of(untouched, [](std::byte byte) {
            return byte == std::byte{0};
        })) << changed_byte;
        std::ranges::fill(there, std::byte{0});
    }
}

// Of both ends: what else is in a header's frame would be taken for data, and data for headers.
TEST_F(TcpSecret, DataBeginsBehindItsFrame) {
    constexpr uint32_t kDataBytes = 2000;
    const auto data_of = [](std::vector<std::byte>& data) {
        return sys::Part{data.data(), data.size()};
    };
    std::vector<std::byte> there(2 * kDataBytes);
    const Capability write =
        regions.capability(regions.expose(there, kWrite).value(), kWrite).value();
    for (const bool is_right : {true, false}) {
        std::ranges::fill(there, std::byte{0});
        auto connected = TcpLink::shake_hands_with({.host = "127.0.0.1",
                                                    .port = service->port(),
                                                    .secret = secret,
                                                    .protection = Protection::kSealedButData,
                                                    .timeout_ms = kConnectMs})
                             .value();
        Transport source(std::move(connected.socket));
        ASSERT_TRUE(source.seal_with(*connected.keys, Handshake::Side::kSource,
                                     Transport::Opening::kStraight, connected.protection));
        RequestHeader put = {.kind = Kind::kPut, .bytes = kDataBytes, .capability = write};
        seal(put);
        std::vector<std::byte> data(kDataBytes + (is_right ? 0 : 50), std::byte{1});
        const std::array<sys::Part, 2> parts = {
            {{reinterpret_cast<std::byte*>(&put), sizeof put}, data_of(data)}};
        ASSERT_GT(is_right ? source.send_with_data(parts) : source.send(parts), 0);
        AnswerHeader answer;
        const sys::Part room = {reinterpret_cast<std::byte*>(&answer), sizeof answer};
        sys::wait_for_socket(source.descriptor(), {.to_read = true}, kConnectMs);
        EXPECT_EQ(source.receive({&room, 1}), is_right ? static_cast<ptrdiff_t>(sizeof answer) : 0);
        EXPECT_EQ(std::ranges::count(there, std::byte{1}), is_right ? kDataBytes : 0);
    }
    for (const bool is_right : {true, false}) {
        int ends[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
        const SessionKeys keys = {};
        Transport target{sys::FileDescriptor(ends[1])};
        ASSERT_TRUE(target.seal_with(keys, Handshake::Side::kTarget, Transport::Opening::kChecked,
                                     Protection::kSealedButData));
        TcpLink::Connected connected;
        connected.socket = sys::FileDescriptor(ends[0]);
        connected.keys = keys;
        connected.protection = Protection::kSealedButData;
        const auto link = TcpLink::over(std::move(connected), 0).value();
        std::vector<std::byte> seen(kDataBytes);
        Get get(write, 0, seen);
        link->post(get);
        RequestHeader asked;
        const sys::Part room = {reinterpret_cast<std::byte*>(&asked), sizeof asked};
        ASSERT_EQ(target.receive({&room, 1}), static_cast<ptrdiff_t>(sizeof asked));
        AnswerHeader answer = {.kind = Kind::kGet, .bytes = kDataBytes, .sequence = asked.sequence};
        seal(answer);
        std::vector<std::byte> data(kDataBytes, std::byte{1});
        const std::array<sys::Part, 2> parts = {
            {{reinterpret_cast<std::byte*>(&answer), sizeof answer}, data_of(data)}};
        ASSERT_GT(is_right ? target.send_with_data(parts) : target.send(parts), 0);
        EXPECT_EQ(link->wait(get), is_right ? HANARE_STATUS_OK : HANARE_STATUS_PEER_LOST);
        EXPECT_TRUE(!is_right || seen == data);
    }
}

TEST_F(TcpChanged, Sealed) { check(Protection::kSealed); }
TEST_F(TcpChanged, SealedButData) { check(Protection::kSealedButData); }

}  // namespace
}  // namespace hanare::fabric
