// SPDX-License-Identifier: Apache-2.0
//
// Calls: over a socket, in sealed frames and through memory.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "fabric/local_link.hpp"
#include "fabric/tcp_link.hpp"
#include "fabric/tcp_service.hpp"
#include "fabric/test_calls.hpp"
#include "sys/futex.hpp"

namespace hanare::fabric {
namespace {

// Answers with the question, backwards; to one that begins with 'x' with what that says.
class Backwards : public CallHandler {
public:
    hanare_status answer_call(uint64_t caller, std::span<const std::byte> question,
                              std::span<std::byte> room, size_t& bytes) noexcept override {
        last_caller = caller;
        if (!question.empty() && question[0] == std::byte{'x'}) return HANARE_STATUS_BUSY;
        if (question.size() > room.size()) return HANARE_STATUS_OUT_OF_RANGE;
        std::ranges::reverse_copy(question, room.begin());
        bytes = question.size();
        return HANARE_STATUS_OK;
    }
    void caller_left(uint64_t caller) noexcept override {
        if (caller == last_caller) left = 1;
        sys::futex_wake_all(left);
    }

    std::atomic<uint64_t> last_caller{0};
    std::atomic<uint32_t> left{0};
};

enum class Way { kTcp, kSealed, kMemory };

class CallTest : public testing::TestWithParam<Way> {
protected:
    ~CallTest() override {
        link.reset();
        service->stop();
    }

    const std::string local_address = "@hanare-call-test-" + std::to_string(getpid());
    const std::optional<Secret> secret =
        GetParam() == Way::kSealed ? Secret::make().value() : std::optional<Secret>();
    Backwards handler;
    ExposedRegions regions;
    SharedBytes shared{4096};
    const uint32_t region = regions.expose(shared.all(), kAtomic, shared.file()).value();
    const Capability counter = regions.capability(region, kAtomic).value();
    std::unique_ptr<TcpService> service =
        TcpService::open({.host = "127.0.0.1",
                          .local_address = GetParam() == Way::kMemory ? local_address : "",
                          .secret = secret,
                          .calls = &handler},
                         regions)
            .value();
    std::jthread thread{[this] { service->run(); }};
    std::unique_ptr<Link> link = connect();
    Prng prng{7};

    std::unique_ptr<Link> connect() const {
        if (GetParam() == Way::kMemory) {
            return LocalLink::connect({.address = local_address}).value();
        }
        return TcpLink::connect({.host = "127.0.0.1",
                                 .port = service->port(),
                                 .secret = secret,
                                 .protection = Protection::kSealed})
            .value();
    }
    // The answer, which has to be right.
    void check(size_t bytes, size_t room_bytes) {
        std::vector<std::byte> question = random_bytes(prng, bytes);
        if (bytes != 0) question[0] = std::byte{'q'};
        std::vector<std::byte> room(room_bytes);
        Ask ask(question, room);
        ASSERT_EQ(run(*link, ask), HANARE_STATUS_OK) << bytes;
        ASSERT_EQ(ask.value(), bytes);
        std::ranges::reverse(question);
        EXPECT_TRUE(std::ranges::equal(question, std::span(room).first(bytes)));
    }
};

INSTANTIATE_TEST_SUITE_P(Ways, CallTest, testing::Values(Way::kTcp, Way::kSealed, Way::kMemory));

TEST_P(CallTest, AreAnswered) {
    for (const size_t bytes : {0, 1, 24, 1000, 2048}) {
        check(bytes, bytes);
        check(bytes, 5000);
    }
}

TEST_P(CallTest, MixWithOtherOperations) {
    for (uint64_t i = 0; i < 500; ++i) {
        Fetch add(counter, 0, FetchOp::kAdd, 1);
        ASSERT_EQ(run(*link, add), HANARE_STATUS_OK);
        EXPECT_EQ(add.value(), i);
        check(prng.below(300), 2048);
    }
}

TEST_P(CallTest, ManyUnderWay) {
    std::vector<std::byte> question(60, std::byte{'q'});
    question.back() = std::byte{'z'};
    std::vector<std::vector<std::byte>> rooms(300, std::vector<std::byte>(70));
    std::vector<std::unique_ptr<Ask>> asks;
    for (auto& room : rooms) asks.push_back(std::make_unique<Ask>(question, room));
    for (const auto& ask : asks) link->post(*ask);
    for (size_t i = 0; i < asks.size(); ++i) {
        ASSERT_EQ(link->wait(*asks[i]), HANARE_STATUS_OK);
        EXPECT_EQ(rooms[i][0], std::byte{'z'});
    }
}

TEST_P(CallTest, FailAsTheHandlerSays) {
    const std::vector<std::byte> question(10, std::byte{'x'});
    std::vector<std::byte> room(10);
    EXPECT_EQ(run(*link, Ask(question, room)), HANARE_STATUS_BUSY);
    check(10, 10);
    EXPECT_EQ(run(*link, Ask(std::vector<std::byte>(11, std::byte{'q'}), room)),
              HANARE_STATUS_OUT_OF_RANGE);
    check(10, 10);
}

TEST_P(CallTest, AreNotTooLarge) {
    std::vector<std::byte> room(10);
    EXPECT_EQ(run(*link, Ask(std::vector<std::byte>(2049), room)), HANARE_STATUS_OUT_OF_RANGE);
    check(10, 10);
}

TEST_P(CallTest, HandlerLearnsOfTheEnd) {
    check(10, 10);
    link.reset();
    const uint64_t end_ns = sys::now_ns() + 20'000 * kNsPerMs;
    while (handler.left == 0 && sys::now_ns() < end_ns) {
        sys::futex_wait(handler.left, 0, 100);
    }
    EXPECT_EQ(handler.left, 1u);
}

}  // namespace
}  // namespace hanare::fabric
