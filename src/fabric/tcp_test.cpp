// SPDX-License-Identifier: Apache-2.0
//
// TcpLink against TcpService over loopback: in one process, and with a peer of its own that stops
// or dies.
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "fabric/fifo.hpp"
#include "fabric/local_link.hpp"
#include "fabric/tcp_link.hpp"
#include "fabric/tcp_service.hpp"
#include "fabric/test_calls.hpp"
#include "sys/clock.hpp"
#include "sys/inject.hpp"
#include "sys/local_socket.hpp"

namespace hanare::fabric {
namespace {

constexpr uint32_t kSpinUs = 20;
constexpr int kConnectMs = 5000;
const std::string kLocalAddress = "@hanare-fabric-test-" + std::to_string(getpid());

std::unique_ptr<TcpLink> connect_to(uint16_t port, uint32_t spin_us = kSpinUs) {
    return TcpLink::connect({.host = "127.0.0.1",
                             .port = port,
                             .secret = {},
                             .spin_us = spin_us,
                             .timeout_ms = kConnectMs})
        .value();
}

Result<std::unique_ptr<TcpService>> open_service(ExposedRegions& regions,
                                                 std::optional<Secret> secret = {},
                                                 const std::string& host = "127.0.0.1") {
    return TcpService::open({.host = host,
                             .port = 0,
                             .local_address = kLocalAddress,
                             .secret = secret,
                             .spin_us = kSpinUs},
                            regions);
}

// A service in this process: anybody may come, or only who knows the secret, with either
// protection.
// Or processes of this machine, through memory to the service, or without it where that goes.
enum class Kept { kOpen, kAuthenticated, kSealedButData, kSealed, kRing, kDirect };

class Tcp : public testing::TestWithParam<Kept> {
protected:
    ~Tcp() override {
        sys::inject::disarm_all();
        link.reset();
        service->stop();
    }

    static constexpr size_t kBytes = 3 << 20;
    const SharedBytes shared{kBytes};
    const std::span<std::byte> memory = shared.all();
    ExposedRegions regions;
    uint32_t region = regions.expose(memory, kRead | kWrite | kAtomic, shared.file()).value();
    Capability all = regions.capability(region, kRead | kWrite | kAtomic).value();
    Capability read_only = regions.capability(region, kRead).value();
    static bool is_local() { return GetParam() == Kept::kRing || GetParam() == Kept::kDirect; }
    static bool has_secret() { return GetParam() != Kept::kOpen && !is_local(); }
    std::optional<Secret> secret = has_secret() ? Secret::make().value() : std::optional<Secret>();
    std::unique_ptr<TcpService> service = open_service(regions, secret).value();
    Prng prng{20260705};
    std::jthread thread{[this] { service->run(); }};
    std::unique_ptr<Link> link = connect();

    std::unique_ptr<Link> connect(uint32_t spin_us = kSpinUs) const {
        if (is_local()) {
            return LocalLink::connect({.address = kLocalAddress,
                                       .spin_us = spin_us,
                                       .timeout_ms = kConnectMs,
                                       .is_direct = GetParam() == Kept::kDirect})
                .value();
        }
        return connect_to_port(service->port(), spin_us);
    }
    Protection protection() const {
        if (GetParam() == Kept::kSealedButData) return Protection::kSealedButData;
        return GetParam() == Kept::kSealed ? Protection::kSealed : Protection::kAuthenticated;
    }
    std::unique_ptr<TcpLink> connect_to_port(uint16_t port, uint32_t spin_us) const {
        return TcpLink::connect({.host = "127.0.0.1",
                                 .port = port,
                                 .secret = secret,
                                 .protection = protection(),
                                 .spin_us = spin_us,
                                 .timeout_ms = kConnectMs})
            .value();
    }

    void check_random_transfers(int rounds);
};

void Tcp::check_random_transfers(int rounds) {
    std::vector<std::byte> expected(memory.begin(), memory.end());
    for (int round = 0; round < rounds; ++round) {
        const size_t bytes = prng.below(4) == 0 ? prng.below(1 << 20) : prng.below(3000);
        const size_t at = prng.below(kBytes - bytes + 1);
        const std::vector<std::byte> data = random_bytes(prng, bytes);
        ASSERT_EQ(run(*link, Put(all, at, data)), HANARE_STATUS_OK);
        std::copy(data.begin(), data.end(), expected.begin() + static_cast<ptrdiff_t>(at));
        std::vector<std::byte> seen(bytes);
        ASSERT_EQ(run(*link, Get(all, at, seen)), HANARE_STATUS_OK);
        ASSERT_TRUE(seen == data) << bytes << " at " << at;
    }
    EXPECT_TRUE(is_same(memory, expected));
}

TEST_P(Tcp, PutsAndGetsOfAllSizes) { check_random_transfers(200); }

// Whoever waits sleeps at once.
TEST_P(Tcp, WithoutSpinning) {
    link = connect(0);
    check_random_transfers(60);
}

TEST_P(Tcp, ShortTransfers) {
    for (const uint64_t skip : {0, 1, 3}) {
        sys::inject::arm(sys::inject::Call::kSend, 0, skip);
        sys::inject::arm(sys::inject::Call::kReceive, 0, skip);
        check_random_transfers(30);
    }
}

// What waits for the socket goes when there is room again, though nothing else comes.
TEST_P(Tcp, TheSocketIsFullForAMoment) {
    if (is_local()) GTEST_SKIP() << "nothing goes over the socket";
    // This one sleeps at once, and would not come across it by chance.
    const auto sleepy =
        TcpService::open({.host = "127.0.0.1", .secret = secret, .spin_us = 0}, regions).value();
    std::jthread sleepy_thread([&] { sleepy->run(); });
    link = connect_to_port(sleepy->port(), 0);
    const std::vector<std::byte> data = random_bytes(prng, 65'536);
    std::vector<std::byte> seen(data.size());
    for (uint64_t skip = 0; skip < 12; ++skip) {
        sys::inject::arm(sys::inject::Call::kSend, EAGAIN, skip, 5);
        EXPECT_EQ(run(*link, Put(all, 0, data)), HANARE_STATUS_OK) << skip;
        seen.assign(seen.size(), std::byte{0});
        EXPECT_EQ(run(*link, Get(all, 0, seen)), HANARE_STATUS_OK) << skip;
        EXPECT_TRUE(seen == data);
    }
    sleepy->stop();
}

TEST_P(Tcp, FetchOps) {
    auto* const word = reinterpret_cast<uint64_t*>(memory.data() + 64);
    *word = 5;
    Fetch add(all, 64, FetchOp::kAdd, 7);
    ASSERT_EQ(run(*link, add), HANARE_STATUS_OK);
    EXPECT_EQ(add.value(), 5u);
    Fetch swap(all, 64, FetchOp::kCompareSwap, 100, 12);
    ASSERT_EQ(run(*link, swap), HANARE_STATUS_OK);
    EXPECT_EQ(swap.value(), 12u);
    Fetch narrow(all, 64, FetchOp::kAnd, 0xf0);
    narrow.width = 4;
    ASSERT_EQ(run(*link, narrow), HANARE_STATUS_OK);
    EXPECT_EQ(narrow.value(), 100u);
    EXPECT_EQ(*word, 100u & 0xf0u);
    EXPECT_EQ(run(*link, Fetch(all, 65, FetchOp::kAdd, 1)), HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(run(*link, Fetch(all, kBytes - 4, FetchOp::kAdd, 1)), HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(run(*link, Fetch(read_only, 64, FetchOp::kAdd, 1)), HANARE_STATUS_PERMISSION);
    EXPECT_EQ(*word, 100u & 0xf0u);
}

TEST_P(Tcp, WhatIsRefusedChangesNothingAndConcernsNobodyElse) {
    memory.back() = std::byte{42};
    Capability forged = all;
    forged.key.words[1] ^= 1;
    const std::vector<std::byte> data = random_bytes(prng, 200'000);
    const std::vector<std::byte> before(memory.begin(), memory.end());
    EXPECT_EQ(run(*link, Put(forged, 0, data)), HANARE_STATUS_BAD_KEY);
    EXPECT_EQ(run(*link, Put(read_only, 0, data)), HANARE_STATUS_PERMISSION);
    EXPECT_EQ(run(*link, Put(all, kBytes - 10, std::span(data).first(2000))),
              HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(run(*link, Put(all, kBytes + 1, {})), HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(run(*link, Put(all, UINT64_MAX, std::span(data).first(1))),
              HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_TRUE(is_same(memory, before));
    ASSERT_TRUE(regions.revoke(region));
    std::vector<std::byte> seen(10);
    EXPECT_EQ(run(*link, Get(all, 0, seen)), HANARE_STATUS_BAD_KEY);
    EXPECT_EQ(run(*link, Get(regions.capability(region, kRead).value(), kBytes - 10, seen)),
              HANARE_STATUS_OK);
    EXPECT_EQ(seen.back(), std::byte{42});
}

// Answers that are no data where data was expected, between others, of all sizes.
TEST_P(Tcp, RefusedGetsBetweenOthers) {
    std::ranges::copy(random_bytes(prng, kBytes), memory.begin());
    Capability forged = all;
    forged.key.words[0] ^= 1;
    for (int round = 0; round < 40; ++round) {
        std::vector<std::vector<std::byte>> seen;
        std::vector<std::unique_ptr<Get>> calls;
        for (int i = 0; i < 60; ++i) {
            seen.emplace_back(prng.below(3) == 0 ? prng.below(200'000) : prng.below(500));
        }
        for (std::vector<std::byte>& each : seen) {
            calls.push_back(std::make_unique<Get>(prng.below(3) == 0 ? forged : all, 100, each));
            link->post(*calls.back());
        }
        for (size_t i = 0; i < calls.size(); ++i) {
            const bool is_good = calls[i]->capability.key == all.key;
            EXPECT_EQ(link->wait(*calls[i]), is_good ? HANARE_STATUS_OK : HANARE_STATUS_BAD_KEY);
            if (!is_good) continue;
            EXPECT_TRUE(std::equal(seen[i].begin(), seen[i].end(), memory.begin() + 100));
        }
    }
}

class TcpQueue : public Tcp {
protected:
    static constexpr size_t kRoom = 12'288 - Fifo::kHeaderBytes;
    const SharedBytes queue_memory{Fifo::kHeaderBytes + kRoom};
    hanare_status formatted = Fifo::format(queue_memory.all());
    uint32_t queue = regions.expose(queue_memory.all(), kPush | kPop, queue_memory.file()).value();
    Capability push_only = regions.capability(queue, kPush).value();
    Capability pop_only = regions.capability(queue, kPop).value();
};

TEST_P(TcpQueue, PushAndPop) {
    std::vector<std::byte> room(kMessageBytesMax);
    EXPECT_EQ(run(*link, Pop(pop_only, room)), HANARE_STATUS_EMPTY);
    std::vector<std::vector<std::byte>> messages;
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{100}, size_t{kMessageBytesMax}}) {
        messages.push_back(random_bytes(prng, bytes));
        EXPECT_EQ(run(*link, Push(push_only, messages.back())), HANARE_STATUS_OK);
    }
    for (const std::vector<std::byte>& message : messages) {
        Pop pop(pop_only, room);
        EXPECT_EQ(run(*link, pop), HANARE_STATUS_OK);
        ASSERT_EQ(pop.value(), message.size());
        EXPECT_TRUE(std::equal(message.begin(), message.end(), room.begin()));
    }
    EXPECT_EQ(run(*link, Push(pop_only, {})), HANARE_STATUS_PERMISSION);
    EXPECT_EQ(run(*link, Pop(push_only, room)), HANARE_STATUS_PERMISSION);
    EXPECT_EQ(run(*link, Push(all, {})), HANARE_STATUS_PERMISSION);
    EXPECT_EQ(run(*link, Push(push_only, random_bytes(prng, kMessageBytesMax + 1))),
              HANARE_STATUS_OUT_OF_RANGE);
    const auto message = random_bytes(prng, 50);
    EXPECT_EQ(run(*link, Push(push_only, message)), HANARE_STATUS_OK);
    Pop small(pop_only, std::span(room).first(49));
    EXPECT_EQ(run(*link, small), HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(small.value(), 50u);
    EXPECT_EQ(run(*link, Pop(pop_only, room)), HANARE_STATUS_OK);
}

TEST_P(TcpQueue, FullIsAnAnswer) {
    const auto message = random_bytes(prng, 1000);
    int pushed = 0;
    hanare_status status = HANARE_STATUS_OK;
    while ((status = run(*link, Push(push_only, message))) == HANARE_STATUS_OK) ++pushed;
    EXPECT_EQ(status, HANARE_STATUS_FULL);
    EXPECT_EQ(pushed, kRoom / 1008);
    std::vector<std::byte> nonsense(64);
    const uint32_t no_queue = regions.expose(nonsense, kPush).value();
    EXPECT_EQ(run(*link, Push(regions.capability(no_queue, kPush).value(), message)),
              HANARE_STATUS_CORRUPT);
}

// Answers that are shorter than the room for them, between others.
TEST_P(TcpQueue, ManyAtATime) {
    for (int round = 0; round < 30; ++round) {
        std::vector<std::vector<std::byte>> messages;
        std::vector<std::vector<std::byte>> rooms(20, std::vector<std::byte>(kMessageBytesMax));
        std::vector<std::unique_ptr<Call>> calls;
        for (int i = 0; i < 10; ++i) messages.push_back(random_bytes(prng, prng.below(600)));
        for (const auto& message : messages) {
            calls.push_back(std::make_unique<Push>(push_only, message));
        }
        for (auto& room : rooms) {
            calls.push_back(std::make_unique<Pop>(pop_only, room));
            calls.push_back(std::make_unique<Get>(all, 5, std::span(room).last(prng.below(9))));
        }
        for (const auto& call : calls) link->post(*call);
        for (size_t i = 0; i < calls.size(); ++i) {
            const bool finds_nothing =
                calls[i]->kind == Kind::kPop && (i - messages.size()) / 2 >= messages.size();
            EXPECT_EQ(link->wait(*calls[i]),
                      finds_nothing ? HANARE_STATUS_EMPTY : HANARE_STATUS_OK);
        }
        for (size_t i = 0; i < messages.size(); ++i) {
            EXPECT_TRUE(std::equal(messages[i].begin(), messages[i].end(), rooms[i].begin()));
        }
    }
}

TEST_P(Tcp, OperationsTakeEffectInTheirOrder) {
    std::vector<std::vector<std::byte>> data;
    for (int i = 0; i < 300; ++i) data.push_back(random_bytes(prng, 1 + prng.below(5000)));
    std::vector<std::unique_ptr<Call>> calls;
    std::vector<std::byte> seen(5000);
    std::vector<std::byte> expected(5000);
    for (const std::vector<std::byte>& each : data) {
        calls.push_back(std::make_unique<Put>(all, 0, each));
        std::copy(each.begin(), each.end(), expected.begin());
    }
    calls.push_back(std::make_unique<Get>(all, 0, seen));
    for (const auto& call : calls) link->post(*call);
    EXPECT_EQ(link->wait(*calls.back()), HANARE_STATUS_OK);
    EXPECT_TRUE(seen == expected);
    for (const auto& call : calls) EXPECT_TRUE(call->is_done());
}

TEST_P(Tcp, ManyThreadsOnOneLink) {
    constexpr int kThreads = 8;
    constexpr int kRounds = 300;
    auto* const word = reinterpret_cast<uint64_t*>(memory.data());
    {
        std::vector<std::jthread> threads;
        for (int number = 0; number < kThreads; ++number) {
            threads.emplace_back([&, number] {
                Prng own(static_cast<uint64_t>(number));
                const size_t at = 4096 + static_cast<size_t>(number) * 200'000;
                for (int round = 0; round < kRounds; ++round) {
                    const std::vector<std::byte> data =
                        random_bytes(own, own.below(round % 20 == 0 ? 200'000 : 300));
                    std::vector<std::byte> seen(data.size());
                    Put put(all, at, data);
                    Get get(all, at, seen);
                    Fetch add(all, 0, FetchOp::kAdd, 1);
                    for (Operation* each :
                         {static_cast<Operation*>(&put), static_cast<Operation*>(&get),
                          static_cast<Operation*>(&add)}) {
                        link->post(*each);
                    }
                    EXPECT_EQ(link->wait(get), HANARE_STATUS_OK);
                    EXPECT_EQ(link->wait(add), HANARE_STATUS_OK);
                    EXPECT_EQ(link->wait(put), HANARE_STATUS_OK);
                    EXPECT_TRUE(seen == data);
                }
            });
        }
    }
    EXPECT_EQ(*word, static_cast<uint64_t>(kThreads) * kRounds);
}

// What is written by hand is not sealed.
class TcpOpen : public Tcp {};

// Bytes that are no requests end their connection and no other.
TEST_P(TcpOpen, NonsenseEndsTheConnection) {
    RequestHeader good = {.kind = Kind::kGet, .bytes = 1, .capability = all};
    seal(good);
    std::vector<RequestHeader> bad(8, good);
    bad[0].version = kWireVersion + 1;
    bad[1].kind = static_cast<Kind>(99);
    bad[2].bytes = kRequestBytesMax + 1;
    bad[3].sequence = 1;
    bad[4] = {.kind = Kind::kFetch, .width = 3, .bytes = 3, .capability = all};
    bad[5] = {.kind = Kind::kFetch, .fetch_op = static_cast<FetchOp>(7), .width = 8, .bytes = 8};
    bad[6].kind = static_cast<Kind>(0);
    for (size_t i = 0; i < bad.size(); ++i) {
        seal(bad[i]);
        if (i == 7) bad[i].offset ^= 1;  // not what was sealed
        const sys::FileDescriptor socket =
            sys::connect_tcp("127.0.0.1", service->port(), kConnectMs).value();
        const sys::Part part = {reinterpret_cast<std::byte*>(&bad[i]), sizeof bad[i]};
        ASSERT_EQ(sys::send_parts(socket.number(), {&part, 1}), sizeof bad[i]);
        ASSERT_TRUE(sys::wait_for_socket(socket.number(), {.to_read = true}, kConnectMs).to_read);
        std::byte answer[64];
        const sys::Part room = {answer, sizeof answer};
        EXPECT_LE(sys::receive_parts(socket.number(), {&room, 1}), 0) << i;
    }
    std::vector<std::byte> seen(1);
    EXPECT_EQ(run(*link, Get(all, 0, seen)), HANARE_STATUS_OK);
}

// Cut off in the middle: what has come of a large put may be there, and nothing else.
TEST_P(TcpOpen, HalfARequest) {
    for (const uint32_t carried : {1000u, 20'000u}) {
        RequestHeader header = {.kind = Kind::kPut, .bytes = carried, .capability = all};
        seal(header);
        std::vector<std::byte> frame(sizeof header + carried, std::byte{7});
        std::memcpy(frame.data(), &header, sizeof header);
        for (const size_t bytes : {size_t{1}, sizeof header - 1, sizeof header + carried / 2}) {
            const sys::FileDescriptor socket =
                sys::connect_tcp("127.0.0.1", service->port(), kConnectMs).value();
            const sys::Part part = {frame.data(), bytes};
            ASSERT_EQ(sys::send_parts(socket.number(), {&part, 1}), bytes);
            ASSERT_EQ(shutdown(socket.number(), SHUT_WR), 0);
            // The service has seen the end when it closes.
            ASSERT_TRUE(
                sys::wait_for_socket(socket.number(), {.to_read = true}, kConnectMs).to_read);
            const bool may_be_there = carried == 20'000 && bytes > sizeof header;
            const size_t from = may_be_there ? carried / 2 : 0;
            std::vector<std::byte> seen(carried - from);
            EXPECT_EQ(run(*link, Get(all, from, seen)), HANARE_STATUS_OK);
            EXPECT_TRUE(seen == std::vector<std::byte>(seen.size())) << carried << " " << bytes;
        }
    }
}

// Answers to large puts may come together, but do not wait for what the peer sends only then.
TEST_P(TcpOpen, PutsAreAnsweredBeforeTheNextHasCome) {
    constexpr uint32_t kCarried = 20'000;
    const sys::FileDescriptor socket =
        sys::connect_tcp("127.0.0.1", service->port(), kConnectMs).value();
    std::vector<std::byte> frames;
    uint32_t made = 0;
    const auto add_put = [&] {
        RequestHeader header = {
            .kind = Kind::kPut, .bytes = kCarried, .sequence = made++, .capability = all};
        seal(header);
        const auto bytes = std::as_bytes(std::span(&header, 1));
        frames.insert(frames.end(), bytes.begin(), bytes.end());
        frames.insert(frames.end(), kCarried, std::byte{7});
    };
    const auto move = [&](bool sends, std::span<std::byte> data) {
        while (!data.empty()) {
            const sys::Part part = {data.data(), data.size()};
            const ptrdiff_t moved = sends ? sys::send_parts(socket.number(), {&part, 1})
                                          : sys::receive_parts(socket.number(), {&part, 1});
            if (moved > 0) data = data.subspan(static_cast<size_t>(moved));
            if (moved > 0) continue;
            if (moved != -EAGAIN) return false;
            const sys::Ready ready = sys::wait_for_socket(
                socket.number(), {.to_read = !sends, .to_write = sends}, kConnectMs);
            if (!ready.to_read && !ready.to_write) return false;
        }
        return true;
    };
    for (const uint32_t whole : {1u, 2u, 3u, 4u, 5u, 9u}) {
        frames.clear();
        for (uint32_t i = 0; i <= whole; ++i) add_put();
        const size_t half = frames.size() - kCarried / 2;
        ASSERT_TRUE(move(true, std::span(frames).first(half)));
        std::vector<AnswerHeader> answers(whole);
        ASSERT_TRUE(move(false, std::as_writable_bytes(std::span(answers)))) << whole;
        for (uint32_t i = 0; i < whole; ++i) {
            EXPECT_EQ(answers[i].sequence, made - 1 - whole + i);
            EXPECT_EQ(answers[i].status, HANARE_STATUS_OK);
        }
        ASSERT_TRUE(move(true, std::span(frames).subspan(half)));
        ASSERT_TRUE(move(false, std::as_writable_bytes(std::span(answers).first(1))));
        EXPECT_EQ(answers[0].sequence, made - 1);
    }
    // Nor for anything at all.
    frames.clear();
    for (uint32_t i = 0; i < 3; ++i) add_put();
    ASSERT_TRUE(move(true, frames));
    ASSERT_EQ(shutdown(socket.number(), SHUT_WR), 0);
    std::vector<AnswerHeader> answers(3);
    ASSERT_TRUE(move(false, std::as_writable_bytes(std::span(answers))));
    EXPECT_EQ(answers[2].sequence, made - 1);
}

// One that always has something to do does not keep the service from another.
TEST_P(Tcp, BusyPeersLeaveTimeForOthers) {
    std::atomic<bool> is_over{false};
    std::vector<std::byte> data(1 << 20);
    const auto busy = connect();
    std::jthread putter([&] {
        while (!is_over) EXPECT_EQ(run(*busy, Put(all, 0, data)), HANARE_STATUS_OK);
    });
    for (int i = 0; i < 50; ++i) {
        const auto fresh = connect();
        std::vector<std::byte> seen(100);
        EXPECT_EQ(run(*fresh, Get(all, 2 << 20, seen)), HANARE_STATUS_OK);
        EXPECT_EQ(run(*link, Get(all, 2 << 20, seen)), HANARE_STATUS_OK);
    }
    is_over = true;
}

TEST_P(Tcp, WhatMakesNoSenseIsRefusedHere) {
    Fetch odd(all, 0, FetchOp::kAdd, 1);
    odd.width = 2;
    EXPECT_EQ(run(*link, odd), HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(run(*link, Fetch(all, 0, static_cast<FetchOp>(9), 1)),
              HANARE_STATUS_INVALID_ARGUMENT);
    std::vector<std::byte> data(131'072, std::byte{1});
    EXPECT_EQ(run(*link, Put(all, UINT64_MAX - 65'535, data)), HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(memory[0], std::byte{0});
    EXPECT_FALSE(link->is_lost());
}

TEST_P(Tcp, AFailingSocketEndsTheLink) {
    if (is_local()) GTEST_SKIP() << "nothing goes over the socket";
    sys::inject::arm(sys::inject::Call::kSend, EIO);
    std::vector<std::byte> seen(10);
    EXPECT_EQ(run(*link, Get(all, 0, seen)), HANARE_STATUS_PEER_LOST);
    sys::inject::disarm_all();
    link = connect();
    EXPECT_EQ(run(*link, Get(all, 0, seen)), HANARE_STATUS_OK);
}

// Signals come while a thread waits, and are handled.
TEST_P(Tcp, WaitingLeavesTimeForSignals) {
    static std::atomic<int> handled{0};
    struct sigaction action = {};
    action.sa_handler = [](int) { handled.fetch_add(1); };
    struct sigaction before = {};
    ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
    handled = 0;
    service->stop();  // so that nobody answers
    thread.join();
    std::vector<std::byte> seen(10);
    Get get(all, 0, seen);
    get.deadline_ns = sys::now_ns() + 400 * kNsPerMs;
    const pthread_t waiting = pthread_self();
    std::jthread killer([&] {
        while (handled.load() < 3 && sys::now_ns() < get.deadline_ns) {
            pthread_kill(waiting, SIGUSR1);
            std::this_thread::yield();
        }
    });
    EXPECT_EQ(run(*link, get), HANARE_STATUS_TIMEOUT);
    EXPECT_GE(handled.load(), 3);
    killer.join();
    sigaction(SIGUSR1, &before, nullptr);
}

std::string name_of(const testing::TestParamInfo<Kept>& info) {
    switch (info.param) {
        case Kept::kOpen: return "Open";
        case Kept::kAuthenticated: return "Authenticated";
        case Kept::kSealedButData: return "SealedButData";
        case Kept::kSealed: return "Sealed";
        case Kept::kRing: return "Ring";
        case Kept::kDirect: return "Direct";
    }
    return "";
}
constexpr auto kAllKept = {Kept::kOpen,   Kept::kAuthenticated, Kept::kSealedButData,
                           Kept::kSealed, Kept::kRing,          Kept::kDirect};
INSTANTIATE_TEST_SUITE_P(All, Tcp, testing::ValuesIn(kAllKept), name_of);
INSTANTIATE_TEST_SUITE_P(All, TcpQueue, testing::ValuesIn(kAllKept), name_of);
INSTANTIATE_TEST_SUITE_P(All, TcpOpen, testing::Values(Kept::kOpen), name_of);

// The peer that is asked, in a process of its own.
class TcpPeer : public testing::Test {
protected:
    void SetUp() override {
        int pipe_ends[2];
        ASSERT_EQ(pipe(pipe_ends), 0);
        child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) serve(pipe_ends[1]);
        close(pipe_ends[1]);
        ASSERT_EQ(read(pipe_ends[0], &told, sizeof told), static_cast<ssize_t>(sizeof told));
        close(pipe_ends[0]);
        link = connect_to(told.port);
        std::vector<std::byte> seen(1);
        ASSERT_EQ(run(*link, Get(told.all, 0, seen)), HANARE_STATUS_OK);
    }
    ~TcpPeer() override {
        link.reset();
        if (child <= 0) return;
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
    }

    [[noreturn]] void serve(int output) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        std::vector<std::byte> memory(kBytes);
        ExposedRegions regions;
        const uint32_t region = regions.expose(memory, kRead | kWrite).value();
        const auto service = open_service(regions).value();
        told = {service->port(), regions.capability(region, kRead | kWrite).value()};
        if (write(output, &told, sizeof told) != sizeof told) _exit(1);
        close(output);
        service->run();
        _exit(0);
    }
    void stop() {
        kill(child, SIGSTOP);
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
        ASSERT_TRUE(WIFSTOPPED(status));
    }

    static constexpr size_t kBytes = 64 << 20;
    struct Told {
        uint16_t port = 0;
        Capability all;
    } told;
    pid_t child = -1;
    std::unique_ptr<TcpLink> link;
};

TEST_F(TcpPeer, Killed) {
    stop();
    std::vector<std::byte> data(kBytes);
    std::vector<std::byte> seen(100);
    Put put(told.all, 0, data);
    Get get(told.all, 0, seen);
    const Ended ended{*link};
    link->post(put);
    link->post(get);
    EXPECT_FALSE(link->test(put));
    kill(child, SIGKILL);
    EXPECT_EQ(link->wait(get), HANARE_STATUS_PEER_LOST);
    EXPECT_EQ(link->wait(put), HANARE_STATUS_PEER_LOST);
    EXPECT_TRUE(link->is_lost());
    EXPECT_EQ(run(*link, Get(told.all, 0, seen)), HANARE_STATUS_PEER_LOST);
}

TEST_F(TcpPeer, StoppedForAWhile) {
    stop();
    std::vector<std::byte> data(2000, std::byte{1});
    std::vector<std::byte> seen(100);
    std::vector<std::byte> late(100'000, std::byte{9});
    Put put(told.all, 0, data);
    Get impatient(told.all, 0, seen);
    Get patient(told.all, 0, late);
    impatient.deadline_ns = sys::now_ns() + 30 * kNsPerMs;
    link->post(put);
    link->post(impatient);
    link->post(patient);
    EXPECT_EQ(link->wait(impatient), HANARE_STATUS_TIMEOUT);
    seen.assign(100, std::byte{77});
    kill(child, SIGCONT);
    EXPECT_EQ(link->wait(patient), HANARE_STATUS_OK);
    EXPECT_EQ(link->wait(put), HANARE_STATUS_OK);
    EXPECT_EQ(late[1999], std::byte{1});
    EXPECT_EQ(late[2000], std::byte{0});
    // What came for the one that had given up went nowhere.
    EXPECT_EQ(seen, std::vector<std::byte>(100, std::byte{77}));
}

TEST_F(TcpPeer, StoppedWhileAPutIsUnderWay) {
    stop();
    std::vector<std::byte> data(kBytes);
    std::vector<std::byte> seen(1);
    Put put(told.all, 0, data);
    Get get(told.all, 0, seen);
    put.deadline_ns = sys::now_ns() + 50 * kNsPerMs;
    link->post(put);
    link->post(get);
    EXPECT_EQ(link->wait(put), HANARE_STATUS_TIMEOUT);
    kill(child, SIGCONT);
    const hanare_status status = link->wait(get);
    // Where half of a request was sent there is no going on.
    EXPECT_TRUE(status == HANARE_STATUS_OK || status == HANARE_STATUS_PEER_LOST) << status;
    EXPECT_EQ(link->is_lost(), status == HANARE_STATUS_PEER_LOST);
}

TEST(TcpAddress, NobodyThere) {
    ExposedRegions regions;
    uint16_t port = 0;
    {
        const auto service = open_service(regions).value();
        port = service->port();
    }
    const auto socket = sys::connect_tcp("127.0.0.1", port, kConnectMs);
    ASSERT_FALSE(socket);
    EXPECT_EQ(socket.error().status, HANARE_STATUS_PEER_LOST);
    EXPECT_EQ(sys::connect_tcp("here", port, kConnectMs).error().status,
              HANARE_STATUS_INVALID_ARGUMENT);
    const Secret secret = Secret::make().value();
    EXPECT_EQ(open_service(regions, secret, "198.51.100.1").error().status, HANARE_STATUS_SYSTEM);
    EXPECT_EQ(open_service(regions, {}, "198.51.100.1").error().status, HANARE_STATUS_PERMISSION);
    EXPECT_EQ(open_service(regions, {}, "0.0.0.0").error().status, HANARE_STATUS_PERMISSION);
    EXPECT_TRUE(sys::is_loopback("127.8.9.1") && sys::is_loopback("::1"));
    EXPECT_FALSE(sys::is_loopback("10.0.0.1") || sys::is_loopback("::2") || sys::is_loopback(""));
}

}  // namespace
}  // namespace hanare::fabric
