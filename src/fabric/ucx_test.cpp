// SPDX-License-Identifier: Apache-2.0
//
// The engine `ucx` by UCX's shared memory, with a target that is a process of its own: this program
// once more.  What is said of one that does not take part is tried with one that is stopped.
#include "fabric/ucx_context.hpp"

#include <gtest/gtest.h>

#ifndef HANARE_HAVE_UCX

TEST(Ucx, BuiltWithout) {
    const auto context = hanare::fabric::UcxContext::open({});
    ASSERT_FALSE(context);
    EXPECT_EQ(context.error().status, HANARE_STATUS_NOT_SUPPORTED);
    GTEST_SKIP() << context.error().text;
}

#else

#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "fabric/fifo.hpp"
#include "fabric/tcp_link.hpp"
#include "fabric/tcp_service.hpp"
#include "fabric/test_calls.hpp"
#include "fabric/ucx_greeting.hpp"
#include "fabric/ucx_link.hpp"
#include "fabric/ucx_target.hpp"
#include "sys/child.hpp"

namespace hanare::fabric {
namespace {

constexpr size_t kBytes = 1 << 20;
constexpr int kConnectMs = 10'000;
constexpr Rights kUsual = kRead | kWrite | kAtomic;

// What the target says of itself, again after it has changed something.
struct Greeting {
    uint32_t port = 0;
    uint32_t failure = 0;  // 0, or why there is no engine
    Capability card;
    Capability all;        // UCX's memory
    Capability read_only;  // the same
    Capability plain;      // memory that is not UCX's
    Capability queue;
    uint32_t first_word = 0;  // of UCX's memory, as the target sees it
};

// Between this process and the target: a line of its own, among those of the test framework.
constexpr std::string_view kMark = "@greeting ";

std::string line_of(const Greeting& greeting) {
    std::string line = "\n" + std::string(kMark);
    for (const std::byte byte : std::as_bytes(std::span(&greeting, 1))) {
        constexpr std::string_view kDigits = "0123456789abcdef";
        line += kDigits[static_cast<size_t>(byte) >> 4];
        line += kDigits[static_cast<size_t>(byte) & 15];
    }
    return line + "\n";
}

Greeting greeting_in(std::string_view digits) {
    Greeting greeting;
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(&greeting, 1));
    EXPECT_GE(digits.size(), 2 * bytes.size());
    for (size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] =
            static_cast<std::byte>(std::stoi(std::string(digits.substr(2 * i, 2)), nullptr, 16));
    }
    return greeting;
}

// ---- the target

// Serves until its input ends; in between it sleeps in read(2).
class ServingTarget {
public:
    explicit ServingTarget(const std::string& transports)
        : context_(UcxContext::open({.transports = transports}).value()),
          target_(UcxTarget::open(*context_, regions_).value()),
          memory_(UcxMemory::allocate(*context_, kBytes).value()),
          exposed_(target_->expose(*memory_, kUsual).value()),
          service_(TcpService::open({.host = "127.0.0.1", .spin_us = 20}, regions_).value()) {
        EXPECT_EQ(Fifo::format(queue_), HANARE_STATUS_OK);
        plain_region_ = regions_.expose(plain_, kUsual).value();
        queue_region_ = regions_.expose(queue_, kPush | kPop).value();
    }
    ~ServingTarget() {
        target_->stop();
        service_->stop();
    }

    void serve() {
        const std::jthread serving([this] { service_->run(); });
        const std::jthread connecting([this] { target_->run(); });
        say();
        char order = 0;
        while (read(STDIN_FILENO, &order, 1) == 1) {
            if (order == 'r') {
                EXPECT_TRUE(target_->revoke(exposed_));
            }
            if (order == 'c') {
                EXPECT_TRUE(target_->conceal(exposed_));
                memory_ = UcxMemory::allocate(*context_, kBytes).value();
                exposed_ = target_->expose(*memory_, kUsual).value();
            }
            say();
        }
        target_->stop();
        service_->stop();
    }

private:
    void say() const {
        Greeting greeting = {.port = service_->port(),
                             .card = target_->card(),
                             .all = regions_.capability(exposed_, kUsual).value(),
                             .read_only = regions_.capability(exposed_, kRead).value(),
                             .plain = regions_.capability(plain_region_, kUsual).value(),
                             .queue = regions_.capability(queue_region_, kPush | kPop).value()};
        std::memcpy(&greeting.first_word, memory_->address(), sizeof greeting.first_word);
        const std::string line = line_of(greeting);
        ASSERT_EQ(write(STDOUT_FILENO, line.data(), line.size()),
                  static_cast<ssize_t>(line.size()));
    }

    ExposedRegions regions_;
    std::unique_ptr<UcxContext> context_;
    std::unique_ptr<UcxTarget> target_;
    std::unique_ptr<UcxMemory> memory_;
    uint32_t exposed_;
    std::unique_ptr<TcpService> service_;
    std::vector<std::byte> plain_ = std::vector<std::byte>(4096);
    alignas(Fifo::kAlignment) std::array<std::byte, 4096> queue_{};
    uint32_t plain_region_ = 0;
    uint32_t queue_region_ = 0;
};

// Run by the tests, in a process of its own.
TEST(UcxOther, DISABLED_Target) {
    std::string transports;
    for (char letter = 0; read(STDIN_FILENO, &letter, 1) == 1 && letter != '\n';) {
        transports += letter;
    }
    ServingTarget(transports).serve();
}

sys::Child start_other(const char* test) {
    return sys::Child::start({"hanare-ucx-test", std::string("--gtest_filter=UcxOther.") + test,
                              "--gtest_also_run_disabled_tests"},
                             sys::Child::Input::kFromUs)
        .value();
}

std::string why_there_is_none() {
    const auto context = UcxContext::open({.transports = "posix"});
    return context ? "" : context.error().text;
}

// ---- the source

class UcxPeer : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        if (const std::string why = why_there_is_none(); !why.empty()) GTEST_SKIP() << why;
        context = UcxContext::open({.transports = GetParam()}).value();
        start(GetParam());
        link = connect();
    }
    ~UcxPeer() override {
        if (target && is_stopped) kill(target->pid(), SIGCONT);
    }

    void start(const std::string& transports) {
        target = start_other("DISABLED_Target");
        ASSERT_TRUE(target->send(transports + "\n"));
        listen();
    }
    // Until it says who it is.
    void listen() {
        for (std::string line;;) {
            char letter = 0;
            if (read(target->output_fd(), &letter, 1) != 1) FAIL() << "the target has ended";
            if (letter != '\n') {
                line += letter;
            } else if (line.starts_with(kMark)) {
                there = greeting_in(std::string_view(line).substr(kMark.size()));
                return;
            } else {
                line.clear();
            }
        }
    }
    void tell(char order) {
        ASSERT_TRUE(target->send({&order, 1}));
        listen();
    }
    void stop_target() {
        is_stopped = true;
        ASSERT_EQ(kill(target->pid(), SIGSTOP), 0);
        int status = 0;
        ASSERT_EQ(waitpid(target->pid(), &status, WUNTRACED), target->pid());
        ASSERT_TRUE(WIFSTOPPED(status));
    }
    void kill_target() {
        siginfo_t info = {};
        ASSERT_EQ(kill(target->pid(), SIGKILL), 0);
        ASSERT_EQ(waitid(P_PID, static_cast<id_t>(target->pid()), &info, WEXITED | WNOWAIT), 0);
    }

    std::unique_ptr<Link> base_link() const {
        return TcpLink::connect({.host = "127.0.0.1",
                                 .port = static_cast<uint16_t>(there.port),
                                 .secret = {},
                                 .spin_us = 20,
                                 .timeout_ms = kConnectMs})
            .value();
    }
    std::unique_ptr<UcxLink> connect() const {
        std::unique_ptr<Link> base = base_link();
        auto connected =
            UcxLink::connect(*context, base, {.card = there.card, .timeout_ms = kConnectMs});
        EXPECT_TRUE(connected) << connected.error().text;
        return std::move(connected).value();
    }
    // The first operation goes by the base link.
    void attach(const Capability& key) {
        std::array<std::byte, 1> byte;
        ASSERT_EQ(run(*link, Get(key, 0, byte)), HANARE_STATUS_OK);
        ASSERT_TRUE(link->is_attached(key));
    }
    uint64_t word_at(uint64_t offset) {
        uint64_t word = 0;
        EXPECT_EQ(run(*link, Get(there.all, offset, std::as_writable_bytes(std::span(&word, 1)))),
                  HANARE_STATUS_OK);
        return word;
    }
    void check_random_transfers(int rounds);

    std::unique_ptr<UcxContext> context;
    std::optional<sys::Child> target;
    Greeting there;
    std::unique_ptr<UcxLink> link;
    bool is_stopped = false;
    Prng prng{20261126};
};

void UcxPeer::check_random_transfers(int rounds) {
    std::vector<std::byte> expected(kBytes);
    for (int round = 0; round < rounds; ++round) {
        const size_t bytes = prng.below(4) == 0 ? prng.below(1 << 19) : prng.below(3000);
        const size_t at = prng.below(kBytes - bytes + 1);
        const std::vector<std::byte> data = random_bytes(prng, bytes);
        ASSERT_EQ(run(*link, Put(there.all, at, data)), HANARE_STATUS_OK);
        std::copy(data.begin(), data.end(), expected.begin() + static_cast<ptrdiff_t>(at));
    }
    std::vector<std::byte> seen(kBytes);
    ASSERT_EQ(run(*link, Get(there.all, 0, seen)), HANARE_STATUS_OK);
    EXPECT_TRUE(seen == expected);
}

TEST_P(UcxPeer, PutsAndGetsOfAllSizes) {
    check_random_transfers(200);
    EXPECT_TRUE(link->is_attached(there.all));
    // It is the memory that the target has, and others see.
    ASSERT_EQ(run(*link, Put(there.all, 0, std::vector<std::byte>(4, std::byte{7}))),
              HANARE_STATUS_OK);
    tell(' ');
    EXPECT_EQ(there.first_word, 0x07070707u);
    std::vector<std::byte> by_link(kBytes);
    std::vector<std::byte> by_base(kBytes);
    const std::unique_ptr<Link> base = base_link();
    EXPECT_EQ(run(*base, Get(there.all, 0, by_base)), HANARE_STATUS_OK);
    EXPECT_EQ(run(*link, Get(there.all, 0, by_link)), HANARE_STATUS_OK);
    EXPECT_TRUE(by_link == by_base);
}

// Nobody is there who could take part: what is not one-sided would not end.
TEST_P(UcxPeer, AStoppedTargetTakesNoPart) {
    attach(there.all);
    ASSERT_TRUE(link->has_fetch_ops());
    stop_target();
    const std::vector<std::byte> data = random_bytes(prng, 100'000);
    std::vector<std::byte> seen(data.size());
    EXPECT_EQ(run(*link, Put(there.all, 64, data)), HANARE_STATUS_OK);
    EXPECT_EQ(run(*link, Get(there.all, 64, seen)), HANARE_STATUS_OK);
    EXPECT_TRUE(seen == data);
    Fetch add(there.all, 8, FetchOp::kAdd, 1);
    EXPECT_EQ(run(*link, add), HANARE_STATUS_OK);
    // And what needs it has its deadline.
    Fetch waking(there.all, 8, FetchOp::kAdd, 1);
    waking.wakes = true;
    waking.deadline_ns = sys::now_ns() + 50 * kNsPerMs;
    EXPECT_EQ(run(*link, waking), HANARE_STATUS_TIMEOUT);
    // Which may still take effect: nothing may overtake it.
    Put late(there.all, 8, data);
    late.deadline_ns = sys::now_ns() + 50 * kNsPerMs;
    EXPECT_EQ(run(*link, late), HANARE_STATUS_TIMEOUT);
}

uint64_t result_of(FetchOp op, uint64_t word, uint64_t operand, uint64_t compare) {
    switch (op) {
        case FetchOp::kAdd: return word + operand;
        case FetchOp::kAnd: return word & operand;
        case FetchOp::kOr: return word | operand;
        case FetchOp::kXor: return word ^ operand;
        case FetchOp::kSwap: return operand;
        case FetchOp::kCompareSwap: return word == compare ? operand : word;
    }
    return 0;
}

TEST_P(UcxPeer, FetchOps) {
    attach(there.all);
    ASSERT_TRUE(link->has_fetch_ops());
    // The base link cannot have a hand in it.
    stop_target();
    for (const uint8_t width : {uint8_t{4}, uint8_t{8}}) {
        const uint64_t mask = width == 4 ? UINT32_MAX : UINT64_MAX;
        const uint64_t beyond = ~mask & 0x1234567800000000;
        ASSERT_EQ(run(*link, Fetch(there.all, 64, FetchOp::kSwap, beyond)), HANARE_STATUS_OK);
        uint64_t expected = 0;
        for (int round = 0; round < 300; ++round) {
            const auto op = static_cast<FetchOp>(1 + prng.below(6));
            // Half of the comparisons hold.
            const uint64_t compare = prng.below(2) == 0 ? expected : prng.next() & mask;
            Fetch fetch(there.all, 64, op, prng.next() & mask, compare);
            fetch.width = width;
            ASSERT_EQ(run(*link, fetch), HANARE_STATUS_OK);
            EXPECT_EQ(fetch.value(), expected) << static_cast<int>(op);
            expected = result_of(op, expected, fetch.operand, compare) & mask;
        }
        EXPECT_EQ(word_at(64), expected | beyond);
    }
}

TEST_P(UcxPeer, WhatIsRefusedChangesNothing) {
    attach(there.all);
    attach(there.read_only);
    Capability forged = there.all;
    forged.key.words[1] ^= 1;
    Capability wider = there.read_only;
    wider.rights = there.all.rights;
    const std::vector<std::byte> data(2000, std::byte{1});
    EXPECT_EQ(run(*link, Put(forged, 0, data)), HANARE_STATUS_BAD_KEY);
    EXPECT_EQ(run(*link, Put(wider, 0, data)), HANARE_STATUS_BAD_KEY);
    EXPECT_EQ(run(*link, Put(there.read_only, 0, data)), HANARE_STATUS_PERMISSION);
    EXPECT_EQ(run(*link, Put(there.all, kBytes - 10, data)), HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(run(*link, Put(there.all, UINT64_MAX, data)), HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(run(*link, Fetch(there.all, 4, FetchOp::kAdd, 1)), HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(run(*link, Fetch(there.all, kBytes - 4, FetchOp::kAdd, 1)),
              HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(run(*link, Fetch(there.read_only, 0, FetchOp::kAdd, 1)), HANARE_STATUS_PERMISSION);
    std::vector<std::byte> seen(kBytes);
    EXPECT_EQ(run(*link, Get(there.all, 0, seen)), HANARE_STATUS_OK);
    EXPECT_TRUE(std::ranges::all_of(seen, [](std::byte byte) { return byte == std::byte{0}; }));
    // And none of it has ended anything.
    EXPECT_TRUE(link->is_attached(there.all));
    EXPECT_FALSE(link->is_attached(forged));
}

TEST_P(UcxPeer, RevokedKeys) {
    attach(there.all);
    const Capability old = there.all;
    ASSERT_EQ(run(*link, Put(old, 0, std::vector<std::byte>(8, std::byte{7}))), HANARE_STATUS_OK);
    tell('r');
    // By UCX, and then, since the link has let go of it, by the base link.
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(run(*link, Put(old, 0, std::vector<std::byte>(8))), HANARE_STATUS_BAD_KEY);
        EXPECT_FALSE(link->is_attached(old));
    }
    tell(' ');
    EXPECT_EQ(there.first_word, 0x07070707u);
    attach(there.all);
    EXPECT_EQ(word_at(0), 0x0707070707070707u);
    ASSERT_EQ(run(*link, Put(there.all, 0, std::vector<std::byte>(8, std::byte{9}))),
              HANARE_STATUS_OK);
    tell(' ');
    EXPECT_EQ(there.first_word, 0x09090909u);
}

TEST_P(UcxPeer, ConcealedRegions) {
    attach(there.all);
    const Capability old = there.all;
    ASSERT_EQ(run(*link, Put(old, 0, std::vector<std::byte>(8, std::byte{7}))), HANARE_STATUS_OK);
    tell('c');
    EXPECT_EQ(there.all.region, old.region);
    std::vector<std::byte> seen(8);
    EXPECT_EQ(run(*link, Get(old, 0, seen)), HANARE_STATUS_BAD_KEY);
    attach(there.all);
    EXPECT_EQ(word_at(0), 0u);
}

// UCX must find what it unpacks a key for; of what it does not find, it lets go of something else.
TEST_P(UcxPeer, AKeyThatHasJustBeenRevokedIsUnderstood) {
    const std::unique_ptr<Link> base = base_link();
    const uint64_t deadline_ns = sys::now_ns() + uint64_t{kConnectMs} * 1'000'000;
    UcxConnection connection = connect_by_ucx(*context, *base, there.card, kConnectMs).value();
    for (const char order : {'r', 'c'}) {
        const Capability old = there.all;
        UcxCard::Entry entry;
        ASSERT_EQ(ask_for_region(*base, there.card, old, deadline_ns, entry), HANARE_STATUS_OK);
        tell(order);
        ucp_rkey* const key =
            connection.endpoint->understand(std::span(entry.key).first(entry.key_bytes));
        EXPECT_NE(key, nullptr);
        connection.endpoint->forget(key);
        EXPECT_EQ(ask_for_region(*base, there.card, old, deadline_ns, entry),
                  HANARE_STATUS_NOT_FOUND);
    }
    connection.endpoint->forget(connection.card.key);
}

// Adds that say OK while the region is revoked again and again have been done once, others at most
// once.
TEST_P(UcxPeer, NothingIsDoneTwiceWhileARegionIsRevoked) {
    uint64_t good = 0;
    uint64_t uncertain = 0;
    for (int round = 0; round < 60; ++round) {
        attach(there.all);
        const Capability key = there.all;
        std::jthread source([&] {
            for (;;) {
                if (run(*link, Fetch(key, 8, FetchOp::kAdd, 1)) != HANARE_STATUS_OK) break;
                ++good;
            }
            ++uncertain;
        });
        tell('r');
    }
    attach(there.all);
    const uint64_t added = word_at(8);
    EXPECT_GE(added, good);
    EXPECT_LE(added, good + uncertain);
}

// Puts that say OK while the region is revoked again and again are in the target's memory.
TEST_P(UcxPeer, RevokedWhileItIsUsed) {
    for (uint32_t round = 1; round <= 60; ++round) {
        attach(there.all);
        const Capability key = there.all;
        uint32_t last_good = 0;
        std::jthread source([&] {
            for (uint32_t value = 1;; ++value) {
                const uint32_t word = round << 20 | value;
                if (run(*link, Put(key, 0, std::as_bytes(std::span(&word, 1)))) !=
                    HANARE_STATUS_OK) {
                    return;
                }
                last_good = word;
            }
        });
        tell('r');
        source.join();
        tell(' ');
        // One more may have come before the copy, and been refused.
        EXPECT_TRUE(there.first_word == last_good || there.first_word == last_good + 1 ||
                    last_good == 0)
            << std::hex << there.first_word << " " << last_good;
    }
}

// What is not UCX's memory, and queues, go by the base link.
TEST_P(UcxPeer, OtherMemory) {
    std::vector<std::byte> seen(16);
    const std::vector<std::byte> data(16, std::byte{5});
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(run(*link, Put(there.plain, 8, data)), HANARE_STATUS_OK);
        EXPECT_EQ(run(*link, Get(there.plain, 8, seen)), HANARE_STATUS_OK);
        EXPECT_EQ(seen, data);
        EXPECT_EQ(run(*link, Push(there.queue, data)), HANARE_STATUS_OK);
        EXPECT_EQ(run(*link, Pop(there.queue, seen)), HANARE_STATUS_OK);
        EXPECT_EQ(seen, data);
    }
    EXPECT_FALSE(link->is_attached(there.plain));
    EXPECT_FALSE(link->is_attached(there.queue));
}

// Fetch-ops that wake go by the base link, all others by UCX if that keeps the order.
TEST_P(UcxPeer, OperationsTakeEffectInTheirOrder) {
    attach(there.all);
    for (int round = 0; round < 200; ++round) {
        std::vector<std::unique_ptr<Fetch>> calls;
        uint64_t expected = word_at(0);
        std::vector<uint64_t> before;
        for (uint64_t i = 0; i < 1 + prng.below(20); ++i) {
            calls.push_back(std::make_unique<Fetch>(there.all, 0, FetchOp::kSwap, prng.next()));
            calls.back()->wakes = prng.below(3) == 0;
            before.push_back(expected);
            expected = calls.back()->operand;
        }
        for (const auto& call : calls) link->post(*call);
        // Of the last one, or of all in any order, or by the next operation.
        if (prng.below(2) == 0) {
            EXPECT_EQ(link->wait(*calls.back()), HANARE_STATUS_OK);
        }
        EXPECT_EQ(word_at(0), expected);
        for (size_t i = 0; i < calls.size(); ++i) {
            EXPECT_EQ(link->wait(*calls[i]), HANARE_STATUS_OK);
            EXPECT_EQ(calls[i]->value(), before[i]);
        }
    }
}

TEST_P(UcxPeer, ManyThreadsOnOneLink) {
    constexpr int kThreads = 4;
    constexpr int kRounds = 300;
    attach(there.all);
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
                    Put put(there.all, at, data);
                    Get get(there.all, at, seen);
                    Fetch add(there.all, 0, FetchOp::kAdd, 1);
                    add.wakes = own.below(4) == 0;
                    for (Operation* each : std::initializer_list<Operation*>{&put, &add, &get}) {
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
    EXPECT_EQ(word_at(0), static_cast<uint64_t>(kThreads) * kRounds);
}

// Fetch-ops of UCX and of the base link, of several sources, are atomic among each other.
TEST_P(UcxPeer, SeveralSources) {
    constexpr int kRounds = 2000;
    attach(there.all);
    const std::unique_ptr<UcxLink> second = connect();
    const std::unique_ptr<Link> base = base_link();
    {
        std::vector<std::jthread> threads;
        for (Link* const each :
             std::initializer_list<Link*>{link.get(), second.get(), base.get()}) {
            threads.emplace_back([&, each] {
                for (int round = 0; round < kRounds; ++round) {
                    EXPECT_EQ(run(*each, Fetch(there.all, 0, FetchOp::kAdd, 1)), HANARE_STATUS_OK);
                }
            });
        }
    }
    EXPECT_EQ(word_at(0), 3u * kRounds);
}

TEST_P(UcxPeer, AKilledTargetIsLost) {
    attach(there.all);
    kill_target();
    const uint64_t end_ns = sys::now_ns() + 10'000 * kNsPerMs;
    std::vector<std::byte> seen(64);
    hanare_status status = HANARE_STATUS_OK;
    while (status == HANARE_STATUS_OK && sys::now_ns() < end_ns) {
        status = run(*link, Get(there.all, 0, seen));
    }
    EXPECT_EQ(status, HANARE_STATUS_PEER_LOST);
    EXPECT_TRUE(link->is_lost());
    EXPECT_EQ(run(*link, Put(there.all, 0, seen)), HANARE_STATUS_PEER_LOST);
}

TEST_P(UcxPeer, AfterItsEndAllIsLost) {
    attach(there.all);
    link->end();
    std::vector<std::byte> seen(64);
    EXPECT_EQ(run(*link, Get(there.all, 0, seen)), HANARE_STATUS_PEER_LOST);
}

TEST_P(UcxPeer, WhatIsNoCardIsRefused) {
    std::unique_ptr<Link> base = base_link();
    const auto no_card = UcxLink::connect(*context, base, {.card = there.all});
    ASSERT_FALSE(no_card);
    EXPECT_EQ(no_card.error().status, HANARE_STATUS_CORRUPT);
    Capability forged = there.card;
    forged.key.words[0] ^= 1;
    const auto no_key = UcxLink::connect(*context, base, {.card = forged});
    ASSERT_FALSE(no_key);
    EXPECT_EQ(no_key.error().status, HANARE_STATUS_BAD_KEY);
    ASSERT_NE(base, nullptr);
}

INSTANTIATE_TEST_SUITE_P(All, UcxPeer, testing::Values("posix", "sysv"));

// ---- what is refused

// By UCX's TCP, which this target has as well, puts and gets are done when the target calls UCX.
class UcxEmulated : public UcxPeer {
protected:
    void SetUp() override {
        if (const std::string why = why_there_is_none(); !why.empty()) GTEST_SKIP() << why;
        context = UcxContext::open({.transports = "tcp"}).value();
        start("posix,tcp");
    }
};

TEST_F(UcxEmulated, IsRefused) {
    std::unique_ptr<Link> base = base_link();
    const auto refused =
        UcxLink::connect(*context, base, {.card = there.card, .timeout_ms = kConnectMs});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status, HANARE_STATUS_NOT_SUPPORTED) << refused.error().text;
    const std::string text = refused.error().text;
    EXPECT_NE(text.find("tcp/"), std::string::npos) << text;
    EXPECT_NE(text.find("emulated"), std::string::npos) << text;
    // The base link is the caller's still.
    ASSERT_NE(base, nullptr);
    std::vector<std::byte> seen(64);
    EXPECT_EQ(run(*base, Get(there.all, 0, seen)), HANARE_STATUS_OK);
}

// Nor does it give memory that others could reach without the target.
TEST(Ucx, EmulatedTransportsHaveNoMemory) {
    if (const std::string why = why_there_is_none(); !why.empty()) GTEST_SKIP() << why;
    const auto context = UcxContext::open({.transports = "tcp"});
    ASSERT_TRUE(context) << context.error().text;
    ExposedRegions regions;
    const auto target = UcxTarget::open(**context, regions);
    ASSERT_FALSE(target);
    EXPECT_EQ(target.error().status, HANARE_STATUS_NOT_SUPPORTED) << target.error().text;
    EXPECT_NE(std::string(target.error().text).find("'tcp'"), std::string::npos);
}

// Who had begun to write when a region was concealed does not write to the memory.
TEST(Ucx, ConcealedMemoryHasOtherPages) {
    if (const std::string why = why_there_is_none(); !why.empty()) GTEST_SKIP() << why;
    const auto context = UcxContext::open({.transports = "posix"}).value();
    ExposedRegions regions;
    const auto target = UcxTarget::open(*context, regions).value();
    const auto memory = UcxMemory::allocate(*context, kBytes).value();
    std::fill_n(memory->address(), kBytes, std::byte{5});
    const uint32_t region = target->expose(*memory, kUsual).value();
    const std::vector<std::byte> key = memory->key();
    ASSERT_TRUE(target->conceal(region));
    EXPECT_NE(memory->key(), key);
    EXPECT_TRUE(std::all_of(memory->address(), memory->address() + kBytes,
                            [](std::byte byte) { return byte == std::byte{5}; }));
    EXPECT_EQ(target->conceal(region).error().status, HANARE_STATUS_NOT_FOUND);
}

TEST(Ucx, NoSuchTransports) {
    if (const std::string why = why_there_is_none(); !why.empty()) GTEST_SKIP() << why;
    const auto none = UcxContext::open({.transports = "nonsense"});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().status, HANARE_STATUS_NOT_SUPPORTED);
    EXPECT_NE(std::string(none.error().text).find("nonsense"), std::string::npos);
}

// ---- what it does to the process

using Handlers = std::array<struct sigaction, 65>;

Handlers handlers_now() {
    Handlers handlers = {};
    for (int number = 1; number < 65; ++number) {
        sigaction(number, nullptr, &handlers[static_cast<size_t>(number)]);
    }
    return handlers;
}

// The beginnings of the functions that UCX would redirect.
using Beginnings = std::array<std::array<std::byte, 32>, 8>;

Beginnings beginnings_now() {
    const std::array<const void*, 8> functions = {
        reinterpret_cast<const void*>(&mmap),   reinterpret_cast<const void*>(&munmap),
        reinterpret_cast<const void*>(&mremap), reinterpret_cast<const void*>(&madvise),
        reinterpret_cast<const void*>(&shmat),  reinterpret_cast<const void*>(&shmdt),
        reinterpret_cast<const void*>(&sbrk),   reinterpret_cast<const void*>(&brk)};
    Beginnings beginnings = {};
    for (size_t i = 0; i < functions.size(); ++i) {
        std::memcpy(beginnings[i].data(), functions[i], beginnings[i].size());
    }
    return beginnings;
}

std::vector<std::string> environment_now() {
    std::vector<std::string> variables;
    for (char** each = environ; *each != nullptr; ++each) variables.emplace_back(*each);
    std::ranges::sort(variables);
    return variables;
}

// Where it has not been loaded before.
TEST(UcxOther, DISABLED_Process) {
    std::signal(SIGSEGV, [](int) { _exit(3); });
    const Handlers handlers = handlers_now();
    const Beginnings beginnings = beginnings_now();
    const std::vector<std::string> environment = environment_now();
    const auto context = UcxContext::open({});
    ASSERT_TRUE(context) << context.error().text;
    ExposedRegions regions;
    const auto target = UcxTarget::open(**context, regions);
    ASSERT_TRUE(target) << target.error().text;
    const Handlers after = handlers_now();
    for (size_t number = 1; number < handlers.size(); ++number) {
        EXPECT_EQ(handlers[number].sa_handler, after[number].sa_handler) << number;
    }
    EXPECT_TRUE(beginnings == beginnings_now());
    EXPECT_EQ(environment, environment_now());
}

TEST(Ucx, LeavesTheProcessAsItIs) {
    if (const std::string why = why_there_is_none(); !why.empty()) GTEST_SKIP() << why;
    sys::Child other = start_other("DISABLED_Process");
    other.end_input();
    std::string output;
    std::array<char, 256> part;
    for (ssize_t got = 0; (got = read(other.output_fd(), part.data(), part.size())) > 0;) {
        output.append(part.data(), static_cast<size_t>(got));
    }
    EXPECT_EQ(other.wait().value(), 0) << output;
    EXPECT_NE(output.find("1 test suite ran"), std::string::npos) << output;
}

}  // namespace
}  // namespace hanare::fabric

#endif
