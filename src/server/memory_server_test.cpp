// SPDX-License-Identifier: Apache-2.0
//
// A server and its clients, over sockets.
#include "server/memory_server.hpp"

#include <dirent.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "base/units.hpp"
#include "fabric/tcp_link.hpp"
#include "lease/ask.hpp"
#include "server/test_support.hpp"
#include "sys/text_file.hpp"

namespace hanare::server {
namespace {

using fabric::Kind;
using lease::Ask;

constexpr uint64_t kUnit = lease::kExtentAlignmentBytes;

uint64_t soon() { return sys::now_ns() + 20'000'000'000; }

// One connection.
class Client {
public:
    explicit Client(const MemoryServer& server, std::optional<fabric::Secret> secret = {})
        : link(fabric::TcpLink::connect(
                   {.host = "127.0.0.1", .port = server.port(), .secret = std::move(secret)})
                   .value()) {}

    hanare_status ask(const lease::Question& question) {
        return lease::ask(*link, question, soon(), reply);
    }
    hanare_status open(const char* name = "") {
        lease::Question question = {.what = Ask::kOpen, .lease = {}};
        std::memcpy(question.client, name, std::min(strlen(name), sizeof question.client));
        const hanare_status status = ask(question);
        id = reply.answer.lease;
        return status;
    }
    hanare_status grow(uint64_t bytes) {
        return ask({.what = Ask::kGrow, .lease = id, .bytes = bytes});
    }
    hanare_status join(const Client& other, uint32_t member = 0) {
        id = other.id;
        return ask({.what = Ask::kJoin, .first = member, .lease = id});
    }
    hanare_status fence(uint64_t members) {
        return ask({.what = Ask::kFence, .lease = id, .bytes = members});
    }
    hanare_status end() { return ask({.what = Ask::kEnd, .lease = id}); }
    hanare_status put(const lease::Extent& extent, uint64_t offset,
                      std::span<const std::byte> data) {
        fabric::Operation put;
        put.capability = extent.capability;
        put.offset = offset;
        put.source = data;
        put.deadline_ns = soon();
        return link->carry_out(put);
    }
    hanare_status get(const lease::Extent& extent, uint64_t offset, std::span<std::byte> data) {
        fabric::Operation get;
        get.kind = Kind::kGet;
        get.capability = extent.capability;
        get.offset = offset;
        get.destination = data;
        get.deadline_ns = soon();
        return link->carry_out(get);
    }

    const std::unique_ptr<fabric::TcpLink> link;
    lease::LeaseId id;
    lease::Reply reply;
};

std::unique_ptr<MemoryServer> started(const MemoryServer::Settings& settings) {
    auto server = MemoryServer::open(settings).value();
    EXPECT_TRUE(server->start());
    return server;
}

std::vector<std::byte> random_bytes(uint64_t seed, size_t bytes) {
    Prng prng(seed);
    std::vector<std::byte> data(bytes);
    for (std::byte& byte : data) byte = static_cast<std::byte>(prng.next());
    return data;
}

TEST(MemoryServer, IsReadAndWrittenUpToTheLastByte) {
    const auto server = started({.memory_bytes = 64 * kMiB});
    Client client(*server);
    ASSERT_EQ(client.open("reader"), HANARE_STATUS_OK);
    ASSERT_EQ(client.grow(10 * kUnit), HANARE_STATUS_OK);
    ASSERT_EQ(client.reply.extents.size(), 1u);
    const lease::Extent extent = client.reply.extents[0];
    ASSERT_EQ(extent.bytes, 10 * kUnit);
    const auto data = random_bytes(1, 200'000);
    std::vector<std::byte> back(data.size());
    for (const uint64_t at : {uint64_t{0}, uint64_t{12'345}, extent.bytes - data.size()}) {
        ASSERT_EQ(client.put(extent, at, data), HANARE_STATUS_OK);
        ASSERT_EQ(client.get(extent, at, back), HANARE_STATUS_OK);
        EXPECT_EQ(data, back);
    }
    const std::span<const std::byte> one = std::span(data).first(1);
    EXPECT_EQ(client.put(extent, extent.bytes - 1, one), HANARE_STATUS_OK);
    EXPECT_EQ(client.put(extent, extent.bytes, one), HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(client.put(extent, extent.bytes - 1, std::span(data).first(2)),
              HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(client.get(extent, UINT64_MAX, std::span(back).first(1)), HANARE_STATUS_OUT_OF_RANGE);
    // To read and write, and nothing else.
    fabric::Operation add;
    add.kind = Kind::kFetch;
    add.capability = extent.capability;
    add.deadline_ns = soon();
    EXPECT_EQ(client.link->carry_out(add), HANARE_STATUS_PERMISSION);
    ASSERT_EQ(client.end(), HANARE_STATUS_OK);
    EXPECT_EQ(client.get(extent, 0, back), HANARE_STATUS_BAD_KEY);
    EXPECT_EQ(client.put(extent, 0, data), HANARE_STATUS_BAD_KEY);
    EXPECT_EQ(client.end(), HANARE_STATUS_NOT_FOUND);
}

TEST(MemoryServer, StatusTellsOfLeases) {
    const auto server = started({.memory_bytes = 64 * kMiB});
    Client client(*server);
    ASSERT_EQ(client.open("a name of 32 characters, no more"), HANARE_STATUS_OK);
    ASSERT_EQ(client.grow(2 * kUnit), HANARE_STATUS_OK);
    ASSERT_EQ(client.ask({.what = Ask::kStatus, .lease = {}}), HANARE_STATUS_OK);
    EXPECT_EQ(client.reply.answer.total_bytes, 64 * kMiB);
    EXPECT_EQ(client.reply.answer.leased_bytes, 2 * kUnit);
    EXPECT_EQ(client.reply.answer.free_bytes, 14 * kUnit);
    EXPECT_EQ(client.reply.answer.extents, 1u);
    EXPECT_EQ(client.reply.answer.server, server->status().server);
    ASSERT_EQ(client.reply.rows.size(), 1u);
    EXPECT_EQ(client_of(client.reply.rows[0]), "a name of 32 characters, no more");
    EXPECT_EQ(client.reply.rows[0].bytes, 2 * kUnit);
    EXPECT_EQ(client.reply.rows[0].connections, 1u);
    EXPECT_EQ(client.reply.rows[0].number, client.id.number);
    // More than fit into an answer, from one on, and from behind the last.
    for (int i = 0; i < 60; ++i) ASSERT_EQ(client.open(), HANARE_STATUS_OK);
    ASSERT_EQ(client.ask({.what = Ask::kStatus, .first = 1, .lease = {}}), HANARE_STATUS_OK);
    EXPECT_EQ(client.reply.rows.size(), lease::kRowsPerAnswer);
    EXPECT_EQ(client.reply.rows[0].number, 2u);
    ASSERT_EQ(client.ask({.what = Ask::kStatus, .first = 60, .lease = {}}), HANARE_STATUS_OK);
    EXPECT_EQ(client.reply.rows.size(), 1u);
    for (const uint32_t first : {61u, UINT32_MAX}) {
        ASSERT_EQ(client.ask({.what = Ask::kStatus, .first = first, .lease = {}}),
                  HANARE_STATUS_OK);
        EXPECT_EQ(client.reply.rows.size(), 0u);
        EXPECT_EQ(client.reply.answer.extents, 61u);
    }
}

TEST(MemoryServer, MemoryOfWhoLeavesIsFree) {
    const auto server = started({.memory_bytes = 64 * kMiB});
    for (int round = 0; round < 5; ++round) {
        Client client(*server);
        ASSERT_EQ(client.open(), HANARE_STATUS_OK);
        ASSERT_EQ(client.grow(64 * kMiB), HANARE_STATUS_OK);
        EXPECT_EQ(server->status().free_bytes, 0u);
        client.link->end();
        ASSERT_TRUE(comes_true([&] { return server->status().free_bytes == 64 * kMiB; }));
    }
    EXPECT_EQ(server->status().leases_abandoned, 5u);
    EXPECT_TRUE(server->status().leases.empty());
}

TEST(MemoryServer, NobodySeesWhatAnotherHad) {
    const auto server = started({.memory_bytes = 16 * kMiB});
    const auto data = random_bytes(3, 16 * kMiB);
    std::vector<std::byte> found(data.size());
    for (int round = 0; round < 4; ++round) {
        Client client(*server);
        ASSERT_EQ(client.open(), HANARE_STATUS_OK);
        ASSERT_TRUE(comes_true([&] { return client.grow(16 * kMiB) != HANARE_STATUS_BUSY; }));
        ASSERT_EQ(client.reply.answer.leased_bytes, 16 * kMiB);
        const lease::Extent extent = client.reply.extents[0];
        ASSERT_EQ(client.get(extent, 0, found), HANARE_STATUS_OK);
        EXPECT_TRUE(is_zero(found)) << round;
        ASSERT_EQ(client.put(extent, 0, data), HANARE_STATUS_OK);
        if (round % 2 == 0) {
            ASSERT_EQ(client.end(), HANARE_STATUS_OK);
        }
    }
}

TEST(MemoryServer, TwoConnectionsKeepALease) {
    const auto server = started({.memory_bytes = 64 * kMiB});
    auto first = std::make_unique<Client>(*server);
    Client second(*server);
    ASSERT_EQ(first->open(), HANARE_STATUS_OK);
    ASSERT_EQ(first->grow(kUnit), HANARE_STATUS_OK);
    const lease::Extent extent = first->reply.extents[0];
    ASSERT_EQ(second.join(*first), HANARE_STATUS_OK);
    const auto data = random_bytes(4, 5000);
    ASSERT_EQ(first->put(extent, 0, data), HANARE_STATUS_OK);
    first.reset();
    ASSERT_TRUE(comes_true([&] { return server->status().leases.at(0).connections == 1; }));
    std::vector<std::byte> back(data.size());
    ASSERT_EQ(second.get(extent, 0, back), HANARE_STATUS_OK);
    EXPECT_EQ(data, back);
    ASSERT_EQ(second.grow(3 * kUnit), HANARE_STATUS_OK);
    EXPECT_EQ(second.reply.extents.size(), 2u);
    second.link->end();
    EXPECT_TRUE(comes_true([&] { return server->status().free_bytes == 64 * kMiB; }));
}

TEST(MemoryServer, TwoCompeteForTheLastBytes) {
    const auto server = started({.memory_bytes = 64 * kMiB});
    for (int round = 0; round < 20; ++round) {
        ASSERT_TRUE(comes_true([&] { return server->status().free_bytes == 64 * kMiB; }));
        Client clients[2] = {Client(*server), Client(*server)};
        uint64_t had[2] = {};
        std::atomic<int> ready{0};
        {
            std::vector<std::jthread> threads;
            for (size_t i = 0; i < 2; ++i) {
                threads.emplace_back([&, i] {
                    EXPECT_EQ(clients[i].open(), HANARE_STATUS_OK);
                    ++ready;
                    while (ready < 2) std::this_thread::yield();
                    while (clients[i].grow(had[i] + kUnit) == HANARE_STATUS_OK) {
                        had[i] = clients[i].reply.answer.leased_bytes;
                    }
                    EXPECT_EQ(clients[i].grow(had[i] + kUnit), HANARE_STATUS_STORE_FULL);
                });
            }
        }
        EXPECT_EQ(had[0] + had[1], 64 * kMiB);
        EXPECT_EQ(server->status().free_bytes, 0u);
        EXPECT_EQ(server->status().leased_bytes, 64 * kMiB);
        // What each has is its own.
        for (Client& client : clients) {
            ASSERT_EQ(client.ask({.what = Ask::kExtents, .lease = client.id}), HANARE_STATUS_OK);
            const std::vector<std::byte> data(100, std::byte{7});
            for (const lease::Extent& extent : client.reply.extents) {
                std::vector<std::byte> back(100);
                ASSERT_EQ(client.get(extent, 0, back), HANARE_STATUS_OK);
                EXPECT_TRUE(is_zero(back));
                ASSERT_EQ(client.put(extent, 0, data), HANARE_STATUS_OK);
            }
        }
    }
}

TEST(MemoryServer, EachHasItsQuota) {
    const auto server = started({.memory_bytes = 64 * kMiB, .quota_bytes = 2 * kUnit});
    Client client(*server);
    ASSERT_EQ(client.open(), HANARE_STATUS_OK);
    EXPECT_EQ(client.reply.answer.free_bytes, 2 * kUnit);
    EXPECT_EQ(client.grow(2 * kUnit + 1), HANARE_STATUS_STORE_FULL);
    EXPECT_EQ(client.grow(2 * kUnit), HANARE_STATUS_OK);
    EXPECT_EQ(client.reply.answer.free_bytes, 0u);
}

TEST(MemoryServer, Drains) {
    const auto server = started({.memory_bytes = 64 * kMiB});
    Client client(*server);
    ASSERT_EQ(client.open(), HANARE_STATUS_OK);
    ASSERT_EQ(client.grow(kUnit), HANARE_STATUS_OK);
    EXPECT_EQ(client.reply.answer.flags, 0u);
    server->drain();
    EXPECT_TRUE(server->status().is_draining);
    EXPECT_EQ(client.ask({.what = Ask::kExtents, .lease = client.id}), HANARE_STATUS_OK);
    EXPECT_EQ(client.reply.answer.flags, lease::kDraining);
    const lease::Extent extent = client.reply.extents[0];
    EXPECT_EQ(client.grow(2 * kUnit), HANARE_STATUS_STORE_FULL);
    EXPECT_EQ(client.put(extent, 0, random_bytes(5, 100)), HANARE_STATUS_OK);
    Client late(*server);
    EXPECT_EQ(late.open(), HANARE_STATUS_BUSY);

    const auto other = started({.memory_bytes = 64 * kMiB});
    Client teller(*other);
    EXPECT_EQ(teller.ask({.what = Ask::kDrain, .lease = {}}), HANARE_STATUS_OK);
    EXPECT_EQ(teller.reply.answer.flags, lease::kDraining);
    EXPECT_TRUE(other->status().is_draining);
}

TEST(MemoryServer, IsAnotherOneAfterEachStart) {
    std::set<uint64_t> numbers;
    uint16_t port = 0;
    lease::LeaseId old;
    for (int round = 0; round < 3; ++round) {
        const auto server = started({.port = port, .memory_bytes = 64 * kMiB});
        port = server->port();
        Client client(*server);
        if (round > 0) {
            EXPECT_EQ(client.ask({.what = Ask::kJoin, .lease = old}), HANARE_STATUS_NOT_FOUND);
        }
        ASSERT_EQ(client.open(), HANARE_STATUS_OK);
        old = client.id;
        EXPECT_TRUE(numbers.insert(client.reply.answer.server).second);
    }
}

TEST(MemoryServer, OtherMachinesNeedTheSecret) {
    for (const char* host : {"0.0.0.0", "::"}) {
        const auto refused = MemoryServer::open({.host = host, .memory_bytes = 64 * kMiB});
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().status, HANARE_STATUS_PERMISSION);
    }
    const fabric::Secret secret = fabric::Secret::make().value();
    const auto server = started({.host = "0.0.0.0", .memory_bytes = 64 * kMiB, .secret = secret});
    Client client(*server, secret);
    ASSERT_EQ(client.open(), HANARE_STATUS_OK);
    ASSERT_EQ(client.grow(kUnit), HANARE_STATUS_OK);
    const lease::Extent extent = client.reply.extents[0];
    const auto data = random_bytes(6, 300'000);
    std::vector<std::byte> back(data.size());
    ASSERT_EQ(client.put(extent, extent.bytes - data.size(), data), HANARE_STATUS_OK);
    ASSERT_EQ(client.get(extent, extent.bytes - data.size(), back), HANARE_STATUS_OK);
    EXPECT_EQ(data, back);
    const auto stranger = fabric::TcpLink::connect(
        {.host = "127.0.0.1", .port = server->port(), .secret = fabric::Secret::make().value()});
    ASSERT_FALSE(stranger);
    EXPECT_EQ(stranger.error().status, HANARE_STATUS_BAD_KEY);
}

// By the secrets of their connections.
TEST(MemoryServer, TenantsAreApart) {
    const fabric::Secret own = fabric::Secret::make().value();
    const fabric::Secret secrets[] = {fabric::Secret::make().value(),
                                      fabric::Secret::make().value()};
    const auto server =
        started({.memory_bytes = 64 * kMiB,
                 .secret = own,
                 .tenants = {{{"a", 2 * kUnit}, secrets[0]}, {{"b", 64 * kMiB}, secrets[1]}}});
    Client owner(*server, own);
    Client a(*server, secrets[0]);
    Client b(*server, secrets[1]);
    ASSERT_EQ(owner.open(), HANARE_STATUS_OK);
    ASSERT_EQ(a.open("of a"), HANARE_STATUS_OK);
    ASSERT_EQ(b.open("of b"), HANARE_STATUS_OK);
    EXPECT_EQ(a.grow(3 * kUnit), HANARE_STATUS_STORE_FULL);
    ASSERT_EQ(a.grow(2 * kUnit), HANARE_STATUS_OK);
    const lease::Extent extent = a.reply.extents[0];
    ASSERT_EQ(b.grow(3 * kUnit), HANARE_STATUS_OK);
    Client other_of_a(*server, secrets[0]);
    EXPECT_EQ(other_of_a.join(a), HANARE_STATUS_OK);
    Client thief(*server, secrets[1]);
    EXPECT_EQ(thief.join(a), HANARE_STATUS_NOT_FOUND);
    EXPECT_EQ(thief.end(), HANARE_STATUS_NOT_FOUND);
    EXPECT_EQ(a.put(extent, 0, random_bytes(1, 100)), HANARE_STATUS_OK);
    EXPECT_EQ(a.ask({.what = Ask::kDrain, .lease = {}}), HANARE_STATUS_PERMISSION);
    EXPECT_EQ(owner.ask({.what = Ask::kDrain, .lease = {}}), HANARE_STATUS_OK);
    EXPECT_FALSE(fabric::TcpLink::connect(
        {.host = "127.0.0.1", .port = server->port(), .secret = fabric::Secret::make().value()}));
    const auto status = server->status();
    ASSERT_EQ(status.leases.size(), 3u);
    EXPECT_EQ(status.leases[1].tenant, "a");
    EXPECT_EQ(status.tenants[0].leased_bytes, 2 * kUnit);
}

TEST(MemoryServer, NonsenseHarmsNobody) {
    const auto server = started({.memory_bytes = 64 * kMiB});
    Client good(*server);
    ASSERT_EQ(good.open(), HANARE_STATUS_OK);
    ASSERT_EQ(good.grow(kUnit), HANARE_STATUS_OK);
    const lease::Extent extent = good.reply.extents[0];
    Client bad(*server);
    Prng prng(9);
    std::vector<std::byte> room(fabric::kMessageBytesMax);
    for (int i = 0; i < 2000; ++i) {
        // Of any size and content, or a question in disorder.
        auto content = random_bytes(
            prng.next(), prng.below(3) == 0 ? prng.below(2049) : sizeof(lease::Question));
        const uint16_t head[2] = {lease::kMessageVersion, static_cast<uint16_t>(prng.below(9))};
        if (content.size() >= sizeof head && prng.below(4) != 0) {
            std::memcpy(content.data(), head, sizeof head);
            constexpr size_t kName = offsetof(lease::Question, client);
            if (content.size() > kName && prng.below(2) == 0) {
                std::fill(content.begin() + kName, content.end(), std::byte{0});
            }
        }
        if (head[1] == static_cast<uint16_t>(Ask::kDrain)) continue;
        fabric::Operation call;
        call.kind = Kind::kCall;
        call.source = content;
        call.destination = std::span(room).first(prng.below(room.size() + 1));
        call.deadline_ns = soon();
        const hanare_status status = bad.link->carry_out(call);
        ASSERT_TRUE(status == HANARE_STATUS_OK || status == HANARE_STATUS_INVALID_ARGUMENT ||
                    status == HANARE_STATUS_NOT_SUPPORTED || status == HANARE_STATUS_NOT_FOUND ||
                    status == HANARE_STATUS_OUT_OF_RANGE || status == HANARE_STATUS_LIMIT)
            << status;
    }
    const auto data = random_bytes(10, 5000);
    std::vector<std::byte> back(data.size());
    ASSERT_EQ(good.put(extent, 0, data), HANARE_STATUS_OK);
    ASSERT_EQ(good.get(extent, 0, back), HANARE_STATUS_OK);
    EXPECT_EQ(data, back);
    EXPECT_EQ(good.grow(64 * kMiB), HANARE_STATUS_OK);
}

// ---- the server itself

TEST(MemoryServer, EndsLeasesWhenItStops) {
    const auto server = started({.memory_bytes = 64 * kMiB});
    Client client(*server);
    ASSERT_EQ(client.open(), HANARE_STATUS_OK);
    ASSERT_EQ(client.grow(kUnit), HANARE_STATUS_OK);
    {
        std::jthread one([&] { server->stop(); });
        std::jthread two([&] { server->stop(); });
    }
    server->stop();
    const LeaseTable::Status status = server->status();
    EXPECT_EQ(status.leases.size(), 0u);
    EXPECT_EQ(status.leased_bytes, 0u);
    EXPECT_EQ(status.free_bytes + status.unwiped_bytes, 64 * kMiB);
    EXPECT_EQ(client.grow(2 * kUnit), HANARE_STATUS_PEER_LOST);
    EXPECT_EQ(server->start().error().status, HANARE_STATUS_BUSY);
}

TEST(MemoryServer, IsStartedOnce) {
    const auto server = started({.memory_bytes = 64 * kMiB});
    EXPECT_EQ(server->start().error().status, HANARE_STATUS_BUSY);
    const auto never_started = MemoryServer::open({.memory_bytes = 64 * kMiB}).value();
    never_started->stop();
    never_started->stop();
    EXPECT_EQ(MemoryServer::open({.memory_bytes = kUnit - 1}).error().status,
              HANARE_STATUS_INVALID_ARGUMENT);
    // The port is taken.
    EXPECT_FALSE(MemoryServer::open({.port = server->port(), .memory_bytes = 64 * kMiB}));
}

// Of what a member has under way nothing takes effect once it is fenced, however much there is.
TEST(MemoryServer, AFencedMemberIsCutOff) {
    const auto server = started({.memory_bytes = 64 * kMiB});
    Client first(*server);
    ASSERT_EQ(first.open(), HANARE_STATUS_OK);
    ASSERT_EQ(first.join(first, 1), HANARE_STATUS_OK);
    ASSERT_EQ(first.grow(kUnit), HANARE_STATUS_OK);
    const lease::Extent extent = first.reply.extents[0];
    const auto theirs = random_bytes(3, kUnit);
    const auto own = random_bytes(4, kUnit);
    std::vector<std::byte> seen(kUnit);
    Client third(*server);
    ASSERT_EQ(third.join(first, 3), HANARE_STATUS_OK);
    for (int turn = 0; turn < 20; ++turn) {
        Client second(*server);
        ASSERT_EQ(second.join(first, 2), HANARE_STATUS_OK);
        constexpr size_t kPuts = 16;
        std::array<fabric::Operation, kPuts> puts;
        for (size_t i = 0; i < kPuts; ++i) {
            puts[i].capability = extent.capability;
            puts[i].offset = i * (kUnit / kPuts);
            puts[i].source = std::span(theirs).subspan(puts[i].offset, kUnit / kPuts);
            second.link->post(puts[i]);
        }
        ASSERT_EQ(first.fence(0b10), HANARE_STATUS_OK);
        ASSERT_EQ(first.put(extent, 0, own), HANARE_STATUS_OK);
        for (fabric::Operation& put : puts) second.link->wait(put);
        EXPECT_EQ(second.put(extent, 0, std::span(theirs).first(8)), HANARE_STATUS_PEER_LOST);
        ASSERT_EQ(first.get(extent, 0, seen), HANARE_STATUS_OK);
        ASSERT_TRUE(seen == own) << turn;
    }
    // Others go on, and so does the one who asks, also about itself.
    EXPECT_EQ(first.fence(0b1), HANARE_STATUS_OK);
    EXPECT_EQ(third.put(extent, 0, std::span(theirs).first(8)), HANARE_STATUS_OK);
    EXPECT_EQ(server->status().leases[0].connections, 2u);
}

std::set<std::string> threads_now() {
    std::set<std::string> numbers;
    DIR* const directory = opendir("/proc/self/task");
    while (const dirent* const entry = readdir(directory)) numbers.insert(entry->d_name);
    closedir(directory);
    return numbers;
}

TEST(MemoryServer, SignalsAreForOtherThreads) {
    const std::set<std::string> before = threads_now();
    const auto server = started({.memory_bytes = 64 * kMiB});
    std::vector<std::string> fresh;
    std::ranges::set_difference(threads_now(), before, std::back_inserter(fresh));
    ASSERT_EQ(fresh.size(), 2u);
    for (const std::string& number : fresh) {
        const auto text = sys::read_text_file("/proc/self/task/" + number + "/status").value();
        const size_t at = text.find("SigBlk:");
        ASSERT_NE(at, text.npos);
        const uint64_t blocked = std::stoull(text.substr(at + 7), nullptr, 16);
        for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD, SIGUSR1}) {
            EXPECT_NE(blocked & (uint64_t{1} << (signal - 1)), 0u) << signal;
        }
    }
}

}  // namespace
}  // namespace hanare::server
