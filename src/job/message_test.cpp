// SPDX-License-Identifier: Apache-2.0
#include "job/message.hpp"

#include <cstring>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "fabric/crc32c.hpp"
#include "job/test_support.hpp"
#include "sys/test_support.hpp"

namespace hanare::job {
namespace {

using testing::bytes_of;

std::vector<std::byte> written(const Message& message) {
    std::vector<std::byte> bytes;
    append(bytes, message);
    return bytes;
}

// With the check put right.
std::vector<std::byte> changed(std::vector<std::byte> bytes, void (*change)(MessageHeader&)) {
    MessageHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    change(header);
    header.check = 0;
    std::memcpy(bytes.data(), &header, sizeof header);
    header.check = fabric::crc32c(0, bytes.data(), bytes.size());
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
}

Parsed parse_all(std::span<const std::byte> bytes) {
    Message message;
    size_t used = 0;
    return parse(bytes, message, used);
}

TEST(JobMessage, ComesAsItWent) {
    const Message sent = {MessageKind::kAnswer, 7, value_of(HANARE_STATUS_PEER_LOST),
                          bytes_of("card")};
    auto bytes = written(sent);
    append(bytes, {.kind = MessageKind::kAsk, .rank = 3});
    Message got;
    size_t used = 0;
    ASSERT_EQ(parse(bytes, got, used), Parsed::kMessage);
    EXPECT_EQ(used, 20u);
    EXPECT_EQ(got.kind, MessageKind::kAnswer);
    EXPECT_EQ(got.rank, 7u);
    EXPECT_EQ(got.status(), HANARE_STATUS_PEER_LOST);
    EXPECT_EQ(got.data, sent.data);
    ASSERT_EQ(parse(std::span(bytes).subspan(used), got, used), Parsed::kMessage);
    EXPECT_EQ(got.kind, MessageKind::kAsk);
}

TEST(JobMessage, AnyPartIsIncomplete) {
    const auto bytes = written({.kind = MessageKind::kPublish, .data = bytes_of("some card")});
    for (size_t part = 0; part < bytes.size(); ++part) {
        EXPECT_EQ(parse_all(std::span(bytes).first(part)), Parsed::kIncomplete) << part;
    }
}

TEST(JobMessage, AnyChangedBitIsNoticed) {
    const auto bytes = written({.kind = MessageKind::kPublish, .data = bytes_of("some card")});
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        auto other = bytes;
        other[bit / 8] ^= std::byte{1} << (bit % 8);
        EXPECT_NE(parse_all(other), Parsed::kMessage) << bit;
    }
}

TEST(JobMessage, WhatIsNone) {
    const auto publish =
        written({.kind = MessageKind::kPublish, .data = std::vector<std::byte>(kMessageDataMax)});
    ASSERT_EQ(parse_all(publish), Parsed::kMessage);
    EXPECT_EQ(parse_all(changed(publish, [](MessageHeader& h) { h.version = 2; })),
              Parsed::kNonsense);
    for (const std::byte kind : {std::byte{0}, std::byte{9}, std::byte{255}}) {
        auto bytes = publish;
        bytes[1] = kind;
        EXPECT_EQ(parse_all(changed(bytes, [](MessageHeader&) {})), Parsed::kNonsense);
    }
    // Nobody waits for so much.
    EXPECT_EQ(parse_all(changed(publish, [](MessageHeader& h) { h.bytes = kMessageDataMax + 1; })),
              Parsed::kNonsense);
    EXPECT_EQ(parse_all(changed(publish, [](MessageHeader& h) { h.bytes = 0xffff; })),
              Parsed::kNonsense);
    const auto ask = written({.kind = MessageKind::kAsk});
    EXPECT_EQ(parse_all(changed(ask, [](MessageHeader& h) { h.bytes = 1; })), Parsed::kNonsense);
    const auto join = written({.kind = MessageKind::kJoin, .data = data_of(1)});
    EXPECT_EQ(parse_all(changed(join, [](MessageHeader& h) { h.bytes = 7; })), Parsed::kNonsense);
}

TEST(JobMessage, RandomBytesAreNone) {
    Prng random(sys::testing::test_seed());
    for (int i = 0; i < 20'000; ++i) {
        std::vector<std::byte> bytes(random.next() % 64);
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
        if (!bytes.empty()) bytes[0] = std::byte{kMessageVersion};
        ASSERT_NE(parse_all(bytes), Parsed::kMessage);
    }
}

}  // namespace
}  // namespace hanare::job
