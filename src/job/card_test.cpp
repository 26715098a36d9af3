// SPDX-License-Identifier: Apache-2.0
#include "job/card.hpp"

#include <gtest/gtest.h>

#include "job/job.hpp"

namespace hanare::job {
namespace {

Card some_card() {
    Card card = {
        .host = "2001:db8::1", .port = 4711, .local_address = "@here", .control = {}, .ucx = {}};
    card.control.words.key.words[1] = 5;
    card.control.forwards.epoch = 6;
    card.control.collectives.region = 7;
    card.ucx.rights = fabric::kRead;
    return card;
}

TEST(Card, ComesBackAsItWas) {
    const auto bytes = some_card().bytes().value();
    EXPECT_LE(bytes.size(), Job::kCardBytesMax);
    const Card card = Card::parse(bytes).value();
    EXPECT_EQ(card.host, "2001:db8::1");
    EXPECT_EQ(card.port, 4711);
    EXPECT_EQ(card.local_address, "@here");
    EXPECT_EQ(card.control.words.key.words[1], 5u);
    EXPECT_EQ(card.control.forwards.epoch, 6u);
    EXPECT_EQ(card.control.collectives.region, 7u);
    EXPECT_EQ(card.ucx.rights, fabric::kRead);
}

TEST(Card, LongestHost) {
    Card card = some_card();
    card.host.assign(Job::kCardBytesMax, '1');
    EXPECT_EQ(card.bytes().error().status, HANARE_STATUS_LIMIT);
    card.host.clear();
    EXPECT_EQ(card.bytes().error().status, HANARE_STATUS_LIMIT);
}

TEST(Card, NonsenseIsRefused) {
    const auto good = some_card().bytes().value();
    for (size_t bytes = 0; bytes < good.size(); ++bytes) {
        EXPECT_EQ(Card::parse(std::span(good).first(bytes)).error().status, HANARE_STATUS_CORRUPT);
    }
    auto longer = good;
    longer.push_back(std::byte{0});
    EXPECT_EQ(Card::parse(longer).error().status, HANARE_STATUS_CORRUPT);
    auto newer = good;
    newer[4] = std::byte{3};
    EXPECT_EQ(Card::parse(newer).error().status, HANARE_STATUS_NOT_SUPPORTED);
    // The first version had no capability for UCX.
    auto older = good;
    older[4] = std::byte{1};
    older.resize(good.size() - sizeof(fabric::Capability));
    EXPECT_EQ(Card::parse(older).error().status, HANARE_STATUS_NOT_SUPPORTED);
}

}  // namespace
}  // namespace hanare::job
