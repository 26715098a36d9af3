// SPDX-License-Identifier: Apache-2.0
//
// Connections that another process makes (remote/broker_service.hpp), to a real server.
#include <arpa/inet.h>
#include <csignal>
#include <memory>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <vector>

#include <gtest/gtest.h>

#include "base/units.hpp"
#include "lease/ask.hpp"
#include "remote/broker_client.hpp"
#include "remote/broker_service.hpp"
#include "remote/server_connection.hpp"
#include "remote/server_process.hpp"
#include "server/memory_server.hpp"
#include "sys/clock.hpp"
#include "sys/descriptor_passing.hpp"
#include "sys/event.hpp"
#include "sys/local_socket.hpp"

namespace hanare::remote {
namespace {

constexpr int kTimeoutMs = 5000;

class BrokerTest : public testing::TestWithParam<bool> {
protected:
    void SetUp() override {
        if (GetParam()) secret = fabric::Secret::make().value();
        server = server::MemoryServer::open({.memory_bytes = 64 * kMiB, .secret = secret}).value();
        ASSERT_TRUE(server->start());
        service = BrokerService::open({.secret = secret, .timeout_ms = kTimeoutMs}).value();
        ASSERT_TRUE(service->start());
    }
    std::unique_ptr<BrokerClient> client() { return client_at(service->place()).value(); }
    Result<std::unique_ptr<BrokerClient>> client_at(const std::string& place) {
        return BrokerClient::open(place, {.host = "127.0.0.1", .port = server->port()}, kTimeoutMs,
                                  GetParam());
    }
    static hanare_status ask_for_status(fabric::TcpLink& link) {
        lease::Question question;
        question.what = lease::Ask::kStatus;
        lease::Reply reply;
        const hanare_status status =
            lease::ask(link, question, sys::now_ns() + 20'000'000'000, reply);
        if (status == HANARE_STATUS_OK) {
            EXPECT_EQ(reply.answer.total_bytes, 64 * kMiB);
        }
        return status;
    }

    std::optional<fabric::Secret> secret;
    std::unique_ptr<server::MemoryServer> server;
    std::unique_ptr<BrokerService> service;
};
INSTANTIATE_TEST_SUITE_P(Kept, BrokerTest, testing::Bool(), [](const auto& each) {
    return std::string(each.param ? "Secured" : "Plain");
});

TEST_P(BrokerTest, MakesConnections) {
    const auto broker = client();
    for (int i = 0; i < 3; ++i) {
        const auto link = broker->connect(0);
        ASSERT_TRUE(link) << link.error().text;
        EXPECT_EQ(ask_for_status(**link), HANARE_STATUS_OK);
    }
}

// What happens around a fork, in one process: there the parent's line may have ended.
TEST_P(BrokerTest, ChildrenHaveLinesOfTheirOwn) {
    auto broker = client();
    for (int generation = 0; generation < 3; ++generation) {
        const auto link = broker->connect_for_child();
        ASSERT_TRUE(link) << link.error().text;
        broker->become_child();
        EXPECT_EQ(ask_for_status(**link), HANARE_STATUS_OK);
    }
    ASSERT_TRUE(broker->connect_for_child());
    broker->finish_fork();
    EXPECT_TRUE(broker->connect(0));
}

TEST_P(BrokerTest, OnlyWhoHasTheTokenIsServed) {
    std::string place = service->place();
    place.back() = place.back() == '0' ? '1' : '0';
    const auto stranger = client_at(place).value()->connect(0);
    ASSERT_FALSE(stranger);
    EXPECT_EQ(stranger.error().status, HANARE_STATUS_STORE_UNAVAILABLE);
    for (const char* const nonsense : {"", "@x", "@x 0", "@x 0 short"}) {
        const auto refused = client_at(nonsense);
        ASSERT_FALSE(refused) << nonsense;
        EXPECT_EQ(refused.error().status, HANARE_STATUS_STORE_UNAVAILABLE);
    }
    EXPECT_TRUE(client()->connect(0));
}

TEST_P(BrokerTest, StrangersDoNotKeepOthersOut) {
    const auto early = client();
    ASSERT_TRUE(early->connect(0));
    std::vector<std::unique_ptr<BrokerClient>> silent;
    for (int i = 0; i < 200; ++i) silent.push_back(client());
    EXPECT_TRUE(early->connect(0));
    EXPECT_TRUE(silent.back()->connect(0));
    EXPECT_FALSE(silent.front()->connect(0));
}

TEST_P(BrokerTest, SaysWhyThereIsNoConnection) {
    const auto broker = client();
    server->stop();
    const auto link = broker->connect(0);
    ASSERT_FALSE(link);
    EXPECT_NE(std::string(link.error().text).find("cannot connect to 127.0.0.1"), std::string::npos)
        << link.error().text;
}

// A server that is stopped keeps the broker longer than the client waits.
TEST(Broker, ALateAnswerIsNotTheLast) {
    constexpr int kPatience_ms = 50;
    const fabric::Secret secret = fabric::Secret::make().value();
    const test::ServerProcess server(64 * kMiB, 0, secret);
    const auto service = BrokerService::open({.secret = secret, .timeout_ms = kTimeoutMs}).value();
    ASSERT_TRUE(service->start());
    const auto broker =
        BrokerClient::open(service->place(), {.host = "127.0.0.1", .port = server.port()},
                           kPatience_ms, true)
            .value();
    server.send(SIGSTOP);
    EXPECT_FALSE(broker->connect(0));
    server.send(SIGCONT);
    const uint64_t end_ns = sys::now_ns() + 20'000'000'000;
    while (!broker->connect(0)) ASSERT_LT(sys::now_ns(), end_ns);
}

// ---- servers that do not answer

// Its port is open and nobody is there.
class SilentServer {
public:
    SilentServer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        auto* const name = reinterpret_cast<sockaddr*>(&address);
        socklen_t bytes = sizeof address;
        EXPECT_EQ(bind(listener_.number(), name, bytes), 0);
        EXPECT_EQ(listen(listener_.number(), 100), 0);
        EXPECT_EQ(getsockname(listener_.number(), name, &bytes), 0);
        port_ = ntohs(address.sin_port);
    }
    uint16_t port() const { return port_; }
    // Since the last time.
    size_t connections() const {
        size_t count = 0;
        while (sys::FileDescriptor(accept(listener_.number(), nullptr, nullptr)).is_open()) ++count;
        return count;
    }

private:
    sys::FileDescriptor listener_;
    uint16_t port_ = 0;
};

// Asks a broker without waiting for the answer.
class Asker {
public:
    Asker(const BrokerService& service, uint16_t port) {
        const std::string& place = service.place();
        line_ = sys::connect_local(place.substr(0, place.find(' '))).value();
        BrokerQuestion question;
        place.copy(question.token.data(), question.token.size(), place.rfind(' ') + 1);
        std::string("127.0.0.1").copy(question.host.data(), question.host.size());
        question.port = port;
        EXPECT_EQ(sys::send_message(line_.number(), std::as_bytes(std::span(&question, 1))), 0);
    }
    hanare_status answer() {
        BrokerAnswer answer;
        sys::FileDescriptor file;
        sys::wait_until_readable(line_.number(), -1, 60'000);
        const ptrdiff_t got = sys::receive_message(
            line_.number(), std::as_writable_bytes(std::span(&answer, 1)), std::span(&file, 1));
        EXPECT_EQ(got, static_cast<ptrdiff_t>(sizeof answer));
        return static_cast<hanare_status>(answer.status);
    }

private:
    sys::FileDescriptor line_;
};

class SilentServerTest : public testing::Test {
protected:
    const fabric::Secret secret = fabric::Secret::make().value();
    const SilentServer silent;
    std::unique_ptr<server::MemoryServer> server =
        server::MemoryServer::open({.memory_bytes = 64 * kMiB, .secret = secret}).value();
    std::unique_ptr<BrokerService> service =
        BrokerService::open({.secret = secret, .timeout_ms = 1000}).value();
};

// All have asked before the first is served.
TEST_F(SilentServerTest, HoldsTheOthersUpOnce) {
    ASSERT_TRUE(server->start());
    std::vector<std::unique_ptr<Asker>> unlucky;
    for (int i = 0; i < 6; ++i) {
        unlucky.push_back(std::make_unique<Asker>(*service, silent.port()));
    }
    Asker lucky(*service, server->port());
    ASSERT_TRUE(service->start());
    EXPECT_EQ(lucky.answer(), HANARE_STATUS_OK);
    for (const auto& each : unlucky) EXPECT_EQ(each->answer(), HANARE_STATUS_TIMEOUT);
    EXPECT_EQ(silent.connections(), 1u);
}

TEST_F(SilentServerTest, IsNotTriedForThoseWhoHaveGivenUp) {
    ASSERT_TRUE(server->start());
    for (int i = 0; i < 6; ++i) Asker(*service, silent.port());
    Asker lucky(*service, server->port());
    ASSERT_TRUE(service->start());
    EXPECT_EQ(lucky.answer(), HANARE_STATUS_OK);
    EXPECT_EQ(silent.connections(), 0u);
}

TEST_F(SilentServerTest, IsTriedAgain) {
    ASSERT_TRUE(service->start());
    EXPECT_EQ(Asker(*service, silent.port()).answer(), HANARE_STATUS_TIMEOUT);
    EXPECT_EQ(silent.connections(), 1u);
    const uint64_t end_ns = sys::now_ns() + 60'000'000'000;
    do {
        EXPECT_EQ(Asker(*service, silent.port()).answer(), HANARE_STATUS_TIMEOUT);
        ASSERT_LT(sys::now_ns(), end_ns);
    } while (silent.connections() == 0);
}

TEST_P(BrokerTest, IsMissedWhenItIsGone) {
    const auto broker = client();
    ASSERT_TRUE(broker->connect(0));
    service.reset();
    const auto link = broker->connect(0);
    ASSERT_FALSE(link);
    EXPECT_NE(std::string(link.error().text).find("`hanare run`"), std::string::npos);
}

// As off loopback.
TEST(Broker, OnlyWhoSealsIsLeftToDoSo) {
    const fabric::Secret secret = fabric::Secret::make().value();
    const auto server =
        server::MemoryServer::open({.memory_bytes = 64 * kMiB,
                                    .secret = secret,
                                    .protection = fabric::Protection::kSealedButData})
            .value();
    ASSERT_TRUE(server->start());
    const fabric::TcpLink::Settings settings = {
        .host = "127.0.0.1", .port = server->port(), .secret = secret, .timeout_ms = kTimeoutMs};
    const auto connected = connect_to_server(settings).value();
    EXPECT_TRUE(connected.keys);
    EXPECT_EQ(connected.protection, fabric::Protection::kSealedButData);
    const auto service = BrokerService::open({.secret = secret, .timeout_ms = kTimeoutMs}).value();
    ASSERT_TRUE(service->start());
    for (const bool seals : {true, false}) {
        const auto broker =
            BrokerClient::open(service->place(), {.host = "127.0.0.1", .port = server->port()},
                               kTimeoutMs, seals)
                .value();
        const auto link = broker->connect(0);
        ASSERT_EQ(link.has_value(), seals);
        if (!seals) {
            EXPECT_EQ(link.error().status, HANARE_STATUS_PERMISSION);
            continue;
        }
        lease::Question question;
        question.what = lease::Ask::kStatus;
        lease::Reply reply;
        EXPECT_EQ(lease::ask(**link, question, sys::now_ns() + 20'000'000'000, reply),
                  HANARE_STATUS_OK);
    }
}

TEST(Broker, ASecretThatTheServerDoesNotKnow) {
    const auto server = server::MemoryServer::open(
                            {.memory_bytes = 64 * kMiB, .secret = fabric::Secret::make().value()})
                            .value();
    ASSERT_TRUE(server->start());
    const auto service = BrokerService::open({.secret = fabric::Secret::make().value()}).value();
    ASSERT_TRUE(service->start());
    const auto broker = BrokerClient::open(
        service->place(), {.host = "127.0.0.1", .port = server->port()}, kTimeoutMs, true);
    const auto link = broker.value()->connect(0);
    ASSERT_FALSE(link);
    EXPECT_TRUE(link.error().status == HANARE_STATUS_BAD_KEY ||
                link.error().status == HANARE_STATUS_PEER_LOST)
        << link.error().text;
}

}  // namespace
}  // namespace hanare::remote
