// SPDX-License-Identifier: Apache-2.0
//
// Questions over a real connection to a server that answers what the test wants.
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/tcp_link.hpp"
#include "fabric/tcp_service.hpp"
#include "lease/ask.hpp"
#include "sys/clock.hpp"

namespace hanare::lease {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

uint64_t soon() { return sys::now_ns() + 20'000 * kNsPerMs; }

// Answers every question with the same bytes.
class Parrot : public fabric::CallHandler {
public:
    hanare_status answer_call(uint64_t, std::span<const std::byte> question,
                              std::span<std::byte> room, size_t& bytes) noexcept override {
        if (question.size() != sizeof asked) return HANARE_STATUS_INVALID_ARGUMENT;
        std::memcpy(&asked, question.data(), sizeof asked);
        if (status != HANARE_STATUS_OK) return status;
        if (answer.size() > room.size()) return HANARE_STATUS_OUT_OF_RANGE;
        std::memcpy(room.data(), answer.data(), answer.size());
        bytes = answer.size();
        return HANARE_STATUS_OK;
    }
    void caller_left(uint64_t) noexcept override {}

    // Of the serving thread while a question is under way, else of the test.
    Question asked;
    hanare_status status = HANARE_STATUS_OK;
    std::vector<std::byte> answer;
};

class AskTest : public testing::Test {
protected:
    ~AskTest() override {
        link.reset();
        service->stop();
    }

    void answer_with(const Answer& head, std::span<const std::byte> list = {}) {
        const auto bytes = std::as_bytes(std::span(&head, 1));
        handler.answer.assign(bytes.begin(), bytes.end());
        handler.answer.insert(handler.answer.end(), list.begin(), list.end());
    }
    hanare_status ask_for(Ask what) { return ask(*link, {.what = what}, soon(), reply); }
    void expect_nothing() const {
        EXPECT_EQ(reply.answer.server, 0u);
        EXPECT_TRUE(reply.extents.empty());
        EXPECT_TRUE(reply.rows.empty());
    }

    Parrot handler;
    fabric::ExposedRegions regions;
    std::unique_ptr<fabric::TcpService> service =
        fabric::TcpService::open({.host = "127.0.0.1", .calls = &handler}, regions).value();
    std::jthread thread{[this] { service->run(); }};
    std::unique_ptr<fabric::Link> link =
        fabric::TcpLink::connect({.host = "127.0.0.1", .port = service->port(), .secret = {}})
            .value();
    Reply reply;
};

std::vector<Extent> some_extents(size_t count) {
    std::vector<Extent> extents(count);
    for (size_t i = 0; i < count; ++i) {
        extents[i] = {.capability = {.region = static_cast<uint32_t>(i),
                                     .epoch = 7,
                                     .rights = fabric::kRead | fabric::kWrite,
                                     .key = {{i, ~i}}},
                      .bytes = (i + 1) * kExtentAlignmentBytes};
    }
    return extents;
}

TEST_F(AskTest, CarriesTheQuestion) {
    answer_with({.server = 5});
    Question question = {.what = Ask::kJoin,
                         .first = 3,
                         .lease = {.number = 9, .key = {{1, 2}}},
                         .bytes = 77,
                         .client = "some client"};
    ASSERT_EQ(ask(*link, question, soon(), reply), HANARE_STATUS_OK);
    EXPECT_EQ(reply.answer.server, 5u);
    EXPECT_EQ(handler.asked.what, Ask::kJoin);
    EXPECT_EQ(handler.asked.first, 3u);
    EXPECT_EQ(handler.asked.lease.number, 9u);
    EXPECT_EQ(handler.asked.lease.key, question.lease.key);
    EXPECT_EQ(handler.asked.bytes, 77u);
    EXPECT_STREQ(handler.asked.client, "some client");
}

TEST_F(AskTest, BringsExtents) {
    for (const Ask what : {Ask::kGrow, Ask::kExtents}) {
        for (const size_t count : {size_t{0}, size_t{1}, kExtentsPerAnswer}) {
            const std::vector<Extent> sent = some_extents(count);
            answer_with({.count = static_cast<uint32_t>(count), .server = 5, .extents = 1000},
                        std::as_bytes(std::span(sent)));
            ASSERT_EQ(ask_for(what), HANARE_STATUS_OK) << count;
            ASSERT_EQ(reply.extents.size(), count);
            for (size_t i = 0; i < count; ++i) {
                EXPECT_EQ(reply.extents[i].bytes, sent[i].bytes);
                EXPECT_EQ(reply.extents[i].capability.region, i);
                EXPECT_EQ(reply.extents[i].capability.key, sent[i].capability.key);
            }
            EXPECT_TRUE(reply.rows.empty());
            EXPECT_EQ(reply.answer.extents, 1000u);
        }
    }
}

TEST_F(AskTest, BringsRows) {
    std::vector<StatusRow> sent(kRowsPerAnswer);
    for (size_t i = 0; i < sent.size(); ++i) sent[i] = {.number = i, .bytes = i << 30};
    std::memset(sent[1].client, 'x', sizeof sent[1].client);
    std::strcpy(sent[2].client, "himeno 17");
    answer_with({.flags = kDraining, .count = static_cast<uint32_t>(sent.size()), .server = 5},
                std::as_bytes(std::span(sent)));
    ASSERT_EQ(ask_for(Ask::kStatus), HANARE_STATUS_OK);
    ASSERT_EQ(reply.rows.size(), sent.size());
    for (size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(reply.rows[i].bytes, i << 30);
    EXPECT_EQ(client_of(reply.rows[0]), "");
    EXPECT_EQ(client_of(reply.rows[1]), std::string(kClientNameBytes, 'x'));
    EXPECT_EQ(client_of(reply.rows[2]), "himeno 17");
    EXPECT_EQ(reply.answer.flags, kDraining);
    EXPECT_TRUE(reply.extents.empty());
}

TEST_F(AskTest, HandsTheServersStatusThrough) {
    for (const hanare_status status :
         {HANARE_STATUS_STORE_FULL, HANARE_STATUS_BUSY, HANARE_STATUS_NOT_SUPPORTED}) {
        handler.status = status;
        EXPECT_EQ(ask_for(Ask::kGrow), status);
        expect_nothing();
    }
}

TEST_F(AskTest, NothingIsLeftOfAnEarlierAnswer) {
    const std::vector<Extent> sent = some_extents(2);
    answer_with({.count = 2, .server = 5}, std::as_bytes(std::span(sent)));
    ASSERT_EQ(ask_for(Ask::kExtents), HANARE_STATUS_OK);
    handler.status = HANARE_STATUS_NOT_FOUND;
    EXPECT_EQ(ask_for(Ask::kExtents), HANARE_STATUS_NOT_FOUND);
    expect_nothing();
}

TEST_F(AskTest, CountFitsWhatCame) {
    const std::vector<Extent> sent = some_extents(kExtentsPerAnswer);
    const auto bytes = std::as_bytes(std::span(sent));
    for (const uint32_t count : {0u, 1u, 3u, uint32_t{kExtentsPerAnswer} + 1, ~0u}) {
        answer_with({.count = count, .server = 5}, bytes.first(2 * sizeof(Extent)));
        EXPECT_EQ(ask_for(Ask::kExtents), HANARE_STATUS_CORRUPT) << count;
        expect_nothing();
    }
    answer_with({.count = 2, .server = 5}, bytes.first(2 * sizeof(Extent) - 1));
    EXPECT_EQ(ask_for(Ask::kExtents), HANARE_STATUS_CORRUPT);
    answer_with({.count = 1, .server = 5}, bytes.first(sizeof(Extent)));
    EXPECT_EQ(ask_for(Ask::kOpen), HANARE_STATUS_CORRUPT);
    EXPECT_EQ(ask_for(Ask::kStatus), HANARE_STATUS_CORRUPT);
    // As many bytes as the count says would be 2^32 * 40 more.
    answer_with({.count = 1, .server = 5});
    EXPECT_EQ(ask_for(Ask::kEnd), HANARE_STATUS_CORRUPT);
    expect_nothing();
}

TEST_F(AskTest, ShortAnswers) {
    answer_with({.server = 5});
    const std::vector<std::byte> whole = handler.answer;
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{2}, whole.size() - 1}) {
        handler.answer.assign(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(bytes));
        EXPECT_EQ(ask_for(Ask::kOpen), HANARE_STATUS_CORRUPT) << bytes;
        expect_nothing();
    }
}

TEST_F(AskTest, OtherVersionsMayBeOfAnotherSize) {
    handler.answer = {std::byte{2}, std::byte{0}, std::byte{9}};
    EXPECT_EQ(ask_for(Ask::kOpen), HANARE_STATUS_NOT_SUPPORTED);
    answer_with({.version = 2, .server = 5});
    EXPECT_EQ(ask_for(Ask::kOpen), HANARE_STATUS_NOT_SUPPORTED);
    expect_nothing();
}

TEST_F(AskTest, ExtentsAreOfPossibleSizes) {
    std::vector<Extent> sent = some_extents(3);
    for (const uint64_t bytes : {uint64_t{0}, kExtentAlignmentBytes / 2, UINT64_MAX}) {
        sent[2].bytes = bytes;
        answer_with({.count = 3, .server = 5}, std::as_bytes(std::span(sent)));
        EXPECT_EQ(ask_for(Ask::kGrow), HANARE_STATUS_CORRUPT) << bytes;
        expect_nothing();
    }
}

TEST_F(AskTest, NamesDoNothingToTerminals) {
    for (const char evil : {'\x1b', '\n', '\x7f', '\x80'}) {
        StatusRow row = {.number = 1};
        std::strcpy(row.client, "a client");
        row.client[3] = evil;
        answer_with({.count = 1, .server = 5}, std::as_bytes(std::span(&row, 1)));
        EXPECT_EQ(ask_for(Ask::kStatus), HANARE_STATUS_CORRUPT) << static_cast<int>(evil);
        expect_nothing();
    }
}

TEST_F(AskTest, DeadlineAndLoss) {
    answer_with({.server = 5});
    // An answer that is quick enough is taken all the same.
    hanare_status status = HANARE_STATUS_OK;
    for (int tries = 0; tries < 1000 && status == HANARE_STATUS_OK; ++tries) {
        status = ask(*link, {}, sys::now_ns() - 1, reply);
    }
    EXPECT_EQ(status, HANARE_STATUS_TIMEOUT);
    link->end();
    EXPECT_EQ(ask_for(Ask::kStatus), HANARE_STATUS_PEER_LOST);
    expect_nothing();
}

TEST(AskOfOthers, WhoIsNoMemoryServer) {
    fabric::ExposedRegions regions;
    const auto service = fabric::TcpService::open({.host = "127.0.0.1"}, regions).value();
    std::jthread thread([&] { service->run(); });
    {
        const auto link =
            fabric::TcpLink::connect({.host = "127.0.0.1", .port = service->port(), .secret = {}})
                .value();
        Reply reply;
        EXPECT_EQ(ask(*link, {}, soon(), reply), HANARE_STATUS_NOT_SUPPORTED);
    }
    service->stop();
}

}  // namespace
}  // namespace hanare::lease
