// SPDX-License-Identifier: Apache-2.0
#include "server/lease_table.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/units.hpp"
#include "lease/ask.hpp"
#include "server/test_table.hpp"

namespace hanare::server {
namespace {

// ---- life of a lease

TEST_F(LeaseTableTest, OpensGrowsEnds) {
    open(kGiB);
    lease::Question question = {.what = Ask::kOpen, .lease = {}};
    std::memcpy(question.client, "somebody", 8);
    const Reply made = ask(1, question);
    ASSERT_EQ(made.status, HANARE_STATUS_OK);
    EXPECT_EQ(made.answer.leased_bytes, 0u);
    EXPECT_EQ(made.answer.extents, 0u);
    EXPECT_EQ(made.answer.free_bytes, kGiB);
    EXPECT_EQ(made.answer.total_bytes, kGiB);
    EXPECT_NE(made.answer.server, 0u);
    const lease::LeaseId id = made.answer.lease;
    const Reply grown = grow(id, 100 * kMiB);
    ASSERT_EQ(grown.status, HANARE_STATUS_OK);
    ASSERT_EQ(grown.extents.size(), 1u);
    EXPECT_EQ(grown.extents[0].bytes, 100 * kMiB);
    EXPECT_EQ(grown.answer.leased_bytes, 100 * kMiB);
    EXPECT_EQ(grown.answer.free_bytes, kGiB - 100 * kMiB);
    EXPECT_EQ(enter(grown.extents), HANARE_STATUS_OK);
    const LeaseTable::Status status = table->status();
    ASSERT_EQ(status.leases.size(), 1u);
    EXPECT_EQ(status.leases.at(0).client, "somebody");
    EXPECT_EQ(status.leases.at(0).bytes, 100 * kMiB);
    EXPECT_EQ(status.leases.at(0).connections, 1u);
    EXPECT_EQ(status.leases.at(0).extents, 1u);
    ASSERT_EQ(end(id), HANARE_STATUS_OK);
    EXPECT_EQ(enter(grown.extents), HANARE_STATUS_BAD_KEY);
    EXPECT_EQ(end(id), HANARE_STATUS_NOT_FOUND);
    EXPECT_EQ(table->status().leases_ended, 1u);
    EXPECT_EQ(table->status().leases_opened, 1u);
    wipe();
    EXPECT_EQ(arena->free_bytes(), kGiB);
}

TEST_F(LeaseTableTest, ExtentsStay) {
    open(kGiB);
    const lease::LeaseId id = opened(1);
    std::vector<lease::Extent> known = grow(id, 1).extents;
    for (uint64_t bytes = 100 * kMiB; bytes <= 500 * kMiB; bytes += 100 * kMiB) {
        const Reply reply = grow(id, bytes);
        ASSERT_EQ(reply.status, HANARE_STATUS_OK);
        ASSERT_GE(reply.extents.size(), known.size());
        for (size_t i = 0; i < known.size(); ++i) {
            EXPECT_EQ(std::memcmp(&known[i], &reply.extents[i], sizeof known[i]), 0);
        }
        known = reply.extents;
    }
    // From the second one on; behind the last one.
    EXPECT_EQ(grow(id, 0, 1).extents.size(), known.size() - 1);
    EXPECT_TRUE(std::memcmp(&grow(id, 0, 1).extents[0], &known[1], sizeof known[1]) == 0);
    for (const uint32_t first : {static_cast<uint32_t>(known.size()), UINT32_MAX}) {
        const Reply none = ask(2, {.what = Ask::kExtents, .first = first, .lease = id});
        EXPECT_EQ(none.status, HANARE_STATUS_OK);
        EXPECT_EQ(none.extents.size(), 0u);
        EXPECT_EQ(none.answer.extents, known.size());
    }
    // As many as there is room for.
    const Reply two = ask(2, {.what = Ask::kExtents, .lease = id}, sizeof(lease::Answer) + 100);
    EXPECT_EQ(two.extents.size(), 2u);
    EXPECT_EQ(two.answer.extents, known.size());
}

TEST_F(LeaseTableTest, IsKeptByTheConnectionsThatJoined) {
    open(kGiB);
    const lease::LeaseId id = opened(1);
    const auto extents = grow(id, kUnit).extents;
    EXPECT_EQ(ask(2, {.what = Ask::kJoin, .lease = id}).status, HANARE_STATUS_OK);
    // Once more makes no difference.
    EXPECT_EQ(ask(2, {.what = Ask::kJoin, .lease = id}).status, HANARE_STATUS_OK);
    EXPECT_EQ(table->status().leases.at(0).connections, 2u);
    table->caller_left(1);
    table->caller_left(1);
    table->caller_left(77);
    EXPECT_EQ(table->status().leases.at(0).connections, 1u);
    EXPECT_EQ(enter(extents), HANARE_STATUS_OK);
    table->caller_left(2);
    EXPECT_EQ(enter(extents), HANARE_STATUS_BAD_KEY);
    EXPECT_EQ(table->status().leases.size(), 0u);
    EXPECT_EQ(table->status().leases_abandoned, 1u);
    EXPECT_EQ(table->status().leases_ended, 0u);
    EXPECT_EQ(table->status().unwiped_bytes, kUnit);
}

TEST_F(LeaseTableTest, EndsWithTheTable) {
    open(kGiB);
    const auto extents = grow(opened(1), kUnit).extents;
    table.reset();
    EXPECT_EQ(enter(extents), HANARE_STATUS_BAD_KEY);
    EXPECT_EQ(arena->unwiped_bytes(), kUnit);
}

TEST_F(LeaseTableTest, NobodySeesWhatAnotherHad) {
    open(64 * kMiB);
    for (int round = 0; round < 5; ++round) {
        const lease::LeaseId id = opened(1);
        const Reply grown = grow(id, 64 * kMiB);
        ASSERT_EQ(grown.status, HANARE_STATUS_OK);
        for (const lease::Extent& extent : grown.extents) {
            fabric::ExposedRegions::Access access;
            ASSERT_EQ(enter(extent.capability, 0, extent.bytes, access), HANARE_STATUS_OK);
            EXPECT_TRUE(is_zero({access.address(), extent.bytes}));
            std::memset(access.address(), 0xcd, extent.bytes);
        }
        ASSERT_EQ(end(id), HANARE_STATUS_OK);
        wipe();
    }
}

// ---- refusals

TEST_F(LeaseTableTest, QuestionsThatAreNone) {
    open(kGiB);
    std::vector<std::byte> room(fabric::kMessageBytesMax);
    size_t bytes = 0;
    const auto raw = [&](const void* question, size_t question_bytes, size_t room_bytes = 2048) {
        return table->answer_call(1, {static_cast<const std::byte*>(question), question_bytes},
                                  std::span(room).first(room_bytes), bytes);
    };
    lease::Question question = {.what = Ask::kOpen, .lease = {}};
    for (size_t part = 0; part < sizeof question; ++part) {
        EXPECT_EQ(raw(&question, part), HANARE_STATUS_INVALID_ARGUMENT) << part;
    }
    std::array<std::byte, 100> longer = {std::byte{1}};
    EXPECT_EQ(raw(longer.data(), longer.size()), HANARE_STATUS_INVALID_ARGUMENT);
    // Another version may be of any size.
    longer[0] = std::byte{2};
    EXPECT_EQ(raw(longer.data(), longer.size()), HANARE_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(raw(longer.data(), 2), HANARE_STATUS_NOT_SUPPORTED);
    for (const int what : {0, 9, 0xffff}) {
        EXPECT_EQ(ask(1, {.what = static_cast<Ask>(what), .lease = {}}).status,
                  HANARE_STATUS_INVALID_ARGUMENT);
    }
    for (const std::string_view name : {"\x1b[2Jx", "a\tb", "\x80"}) {
        lease::Question bad = {.what = Ask::kOpen, .lease = {}};
        std::ranges::copy(name, bad.client);
        EXPECT_EQ(ask(1, bad).status, HANARE_STATUS_INVALID_ARGUMENT);
    }
    // Nothing happens of which the client would not learn.
    EXPECT_EQ(raw(&question, sizeof question, sizeof(lease::Answer) - 1),
              HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(raw(&question, sizeof question, 0), HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(table->status().leases_opened, 0u);
    EXPECT_EQ(table->status().refusals, 0u);
}

TEST_F(LeaseTableTest, AKeyOpensItsLeaseOnly) {
    open(kGiB);
    const lease::LeaseId id = opened(1);
    const lease::LeaseId other = opened(1);
    EXPECT_NE(id.number, other.number);
    EXPECT_FALSE(id.key == other.key);
    std::vector<lease::LeaseId> wrong = {
        {id.number, other.key}, {0, id.key}, {UINT64_MAX, id.key}, {id.number, {}}};
    for (unsigned bit = 0; bit < 128; ++bit) {
        wrong.push_back(id);
        wrong.back().key.words[bit / 64] ^= uint64_t{1} << (bit % 64);
    }
    for (const lease::LeaseId& bad : wrong) {
        for (const Ask what : {Ask::kJoin, Ask::kGrow, Ask::kExtents, Ask::kEnd}) {
            EXPECT_EQ(ask(2, {.what = what, .lease = bad, .bytes = kUnit}).status,
                      HANARE_STATUS_NOT_FOUND);
        }
    }
    EXPECT_EQ(table->status().leases.size(), 2u);
    EXPECT_EQ(table->status().leased_bytes, 0u);
}

TEST_F(LeaseTableTest, SizesThatNobodyCanHave) {
    open(kGiB);
    const lease::LeaseId id = opened(1);
    ASSERT_EQ(grow(id, 3 * kUnit).status, HANARE_STATUS_OK);
    const uint64_t had = table->status().leased_bytes;
    for (const uint64_t bytes :
         {kGiB + 1, uint64_t{1} << 62, UINT64_MAX - kUnit, UINT64_MAX - 1, UINT64_MAX}) {
        EXPECT_EQ(grow(id, bytes).status, HANARE_STATUS_STORE_FULL) << bytes;
        EXPECT_EQ(table->status().leased_bytes, had);
    }
    EXPECT_EQ(table->status().refusals, 5u);
}

TEST_F(LeaseTableTest, LeasesHaveAQuota) {
    open(kGiB, {.quota_bytes = 100 * kMiB + 1000});
    const lease::LeaseId id = opened(1);
    ASSERT_EQ(grow(id, 90 * kMiB).status, HANARE_STATUS_OK);
    const Reply all = grow(id, 100 * kMiB);
    ASSERT_EQ(all.status, HANARE_STATUS_OK);
    EXPECT_EQ(all.answer.leased_bytes, 100 * kMiB);
    EXPECT_EQ(all.answer.free_bytes, 0u);
    EXPECT_EQ(grow(id, 100 * kMiB + 1).status, HANARE_STATUS_STORE_FULL);
    EXPECT_EQ(grow(opened(1), 101 * kMiB).status, HANARE_STATUS_STORE_FULL);
    EXPECT_EQ(grow(opened(1), 100 * kMiB).status, HANARE_STATUS_OK);
}

TEST_F(LeaseTableTest, ThereAreLimitsOfLeases) {
    open(kGiB, {.leases_max = 100});
    std::vector<lease::LeaseId> ids;
    for (size_t i = 0; i < LeaseTable::kLeasesPerConnectionMax; ++i) ids.push_back(opened(1));
    EXPECT_EQ(ask(1, {.what = Ask::kOpen, .lease = {}}).status, HANARE_STATUS_LIMIT);
    const lease::LeaseId other = opened(2);
    EXPECT_EQ(ask(1, {.what = Ask::kJoin, .lease = other}).status, HANARE_STATUS_LIMIT);
    EXPECT_EQ(ask(1, {.what = Ask::kJoin, .lease = ids[5]}).status, HANARE_STATUS_OK);
    // Leases that have ended do not count, whoever ended them.
    ASSERT_EQ(ask(3, {.what = Ask::kEnd, .lease = ids[7]}).status, HANARE_STATUS_OK);
    EXPECT_EQ(ask(1, {.what = Ask::kJoin, .lease = other}).status, HANARE_STATUS_OK);
    EXPECT_EQ(ask(1, {.what = Ask::kOpen, .lease = {}}).status, HANARE_STATUS_LIMIT);
    while (table->status().leases.size() < 100) opened(2);
    EXPECT_EQ(ask(3, {.what = Ask::kOpen, .lease = {}}).status, HANARE_STATUS_LIMIT);
    table->caller_left(1);
    EXPECT_EQ(table->status().leases.size(), 100 - 63u);
    EXPECT_EQ(ask(3, {.what = Ask::kOpen, .lease = {}}).status, HANARE_STATUS_OK);
    EXPECT_EQ(table->status().refusals, 4u);
}

// However often somebody goes and another comes.
TEST_F(LeaseTableTest, TellsOnceThatThereAreNoMoreLeases) {
    open(kGiB, {.leases_max = 2});
    opened(1);
    testing::internal::CaptureStderr();
    for (int i = 0; i < 3; ++i) {
        const lease::LeaseId other = opened(2);
        EXPECT_EQ(ask(3, {.what = Ask::kOpen, .lease = {}}).status, HANARE_STATUS_LIMIT);
        EXPECT_EQ(end(other), HANARE_STATUS_OK);
    }
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
}

// Secrets 1 and 2 are tenants', 0 is whose server it is.
TEST_F(LeaseTableTest, TenantsSeeTheirOwn) {
    open(kGiB, {.tenants = {{.name = "a", .quota_bytes = 5 * kUnit + 1},
                            {.name = "b", .quota_bytes = UINT64_MAX}}});
    EXPECT_TRUE(table->caller_came(10, 0));
    EXPECT_TRUE(table->caller_came(11, 1));
    EXPECT_TRUE(table->caller_came(12, 2));
    EXPECT_FALSE(table->caller_came(13, 3));
    const lease::LeaseId own = opened(10);
    const lease::LeaseId first = opened(11);
    const lease::LeaseId second = opened(11);
    const lease::LeaseId other = opened(12);
    ASSERT_EQ(ask(12, {.what = Ask::kGrow, .lease = other, .bytes = kUnit}).status,
              HANARE_STATUS_OK);

    // Another's lease is none, whatever is known of it.
    for (const Ask what : {Ask::kJoin, Ask::kGrow, Ask::kExtents, Ask::kFence, Ask::kEnd}) {
        for (const auto& [caller, id] :
             {std::pair(uint64_t{11}, other), {11, own}, {12, first}, {10, other}, {99, other}}) {
            EXPECT_EQ(ask(caller, {.what = what, .lease = id, .bytes = kUnit}).status,
                      HANARE_STATUS_NOT_FOUND)
                << static_cast<int>(what) << " by " << caller;
        }
    }

    // The quota is of all leases together.
    ASSERT_EQ(ask(11, {.what = Ask::kGrow, .lease = first, .bytes = 3 * kUnit}).status,
              HANARE_STATUS_OK);
    const uint64_t left = 5 * kUnit - table->status().tenants[0].leased_bytes;
    EXPECT_EQ(ask(11, {.what = Ask::kGrow, .lease = second, .bytes = left + kUnit}).status,
              HANARE_STATUS_STORE_FULL);
    const Reply reply = ask(11, {.what = Ask::kExtents, .lease = second});
    EXPECT_EQ(reply.answer.free_bytes, left);
    if (left > 0) {
        EXPECT_EQ(ask(11, {.what = Ask::kGrow, .lease = second, .bytes = left}).status,
                  HANARE_STATUS_OK);
    }
    EXPECT_EQ(ask(11, {.what = Ask::kEnd, .lease = first}).status, HANARE_STATUS_OK);
    EXPECT_EQ(table->status().tenants[0].leased_bytes, left);
    table->caller_left(11);
    EXPECT_EQ(table->status().tenants[0].leased_bytes, 0u);
    EXPECT_GE(table->status().tenants[1].leased_bytes, kUnit);
}

TEST_F(LeaseTableTest, TenantsLeaveLeasesToOthers) {
    open(kGiB, {.leases_max = 30, .tenants = {{.name = "a"}, {.name = "b"}}});
    ASSERT_TRUE(table->caller_came(11, 1));
    ASSERT_TRUE(table->caller_came(12, 1));
    ASSERT_TRUE(table->caller_came(13, 2));
    for (int i = 0; i < 5; ++i) opened(11);
    for (int i = 0; i < 5; ++i) opened(12);
    for (const uint64_t caller : {11, 12}) {
        EXPECT_EQ(ask(caller, {.what = Ask::kOpen, .lease = {}}).status, HANARE_STATUS_LIMIT);
    }
    for (int i = 0; i < 10; ++i) opened(13);
    for (int i = 0; i < 10; ++i) opened(10);
    table->caller_left(12);
    EXPECT_EQ(ask(11, {.what = Ask::kOpen, .lease = {}}).status, HANARE_STATUS_OK);
}

TEST_F(LeaseTableTest, WhatTenantsAreTold) {
    open(kGiB, {.tenants = {{.name = "sixteen-letters!", .quota_bytes = 8 * kUnit}}});
    ASSERT_TRUE(table->caller_came(11, 1));
    opened(10);
    const lease::LeaseId first = opened(11);
    opened(10);
    const lease::LeaseId second = opened(11);
    ASSERT_EQ(ask(11, {.what = Ask::kGrow, .lease = first, .bytes = kUnit}).status,
              HANARE_STATUS_OK);
    const Reply theirs = ask(11, {.what = Ask::kStatus, .lease = {}});
    ASSERT_EQ(theirs.rows.size(), 2u);
    EXPECT_EQ(theirs.answer.extents, 2u);
    EXPECT_EQ(theirs.rows[0].number, first.number);
    EXPECT_EQ(theirs.rows[1].number, second.number);
    EXPECT_EQ(tenant_of(theirs.rows[0]), "sixteen-letters!");
    EXPECT_EQ(theirs.answer.leased_bytes, theirs.rows[0].bytes);
    EXPECT_EQ(theirs.answer.free_bytes, 8 * kUnit - theirs.rows[0].bytes);
    const Reply rest = ask(11, {.what = Ask::kStatus, .first = 1, .lease = {}});
    ASSERT_EQ(rest.rows.size(), 1u);
    EXPECT_EQ(rest.rows[0].number, second.number);
    EXPECT_TRUE(ask(11, {.what = Ask::kStatus, .first = 2, .lease = {}}).rows.empty());
    const Reply all = ask(10, {.what = Ask::kStatus, .lease = {}});
    ASSERT_EQ(all.rows.size(), 4u);
    EXPECT_EQ(tenant_of(all.rows[0]), "");
    EXPECT_EQ(tenant_of(all.rows[1]), "sixteen-letters!");

    EXPECT_EQ(ask(11, {.what = Ask::kDrain, .lease = {}}).status, HANARE_STATUS_PERMISSION);
    EXPECT_FALSE(table->is_draining());
    EXPECT_EQ(ask(10, {.what = Ask::kDrain, .lease = {}}).status, HANARE_STATUS_OK);
    EXPECT_TRUE(table->is_draining());
}

TEST_F(LeaseTableTest, MembersAreFenced) {
    open(kGiB);
    const lease::LeaseId id = opened(1);
    const lease::LeaseId other = opened(9);
    for (uint64_t caller = 2; caller <= 5; ++caller) {
        const auto member = static_cast<uint32_t>(caller / 2);  // 1, 1, 2, 2
        ASSERT_EQ(ask(caller, {.what = Ask::kJoin, .first = member, .lease = id}).status,
                  HANARE_STATUS_OK);
    }
    ASSERT_EQ(ask(9, {.what = Ask::kJoin, .first = 1, .lease = other}).status, HANARE_STATUS_OK);
    EXPECT_EQ(ask(1, {.what = Ask::kJoin, .first = 65, .lease = id}).status,
              HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(ask(1, {.what = Ask::kFence, .lease = {}, .bytes = 1}).status,
              HANARE_STATUS_NOT_FOUND);
    EXPECT_EQ(table->next_to_cut_off(), 0u);

    const auto cut_off = [&](uint64_t caller, uint64_t members) {
        EXPECT_EQ(ask(caller, {.what = Ask::kFence, .lease = id, .bytes = members}).status,
                  HANARE_STATUS_OK);
        std::set<uint64_t> callers;
        while (const uint64_t each = table->next_to_cut_off()) callers.insert(each);
        return callers;
    };
    EXPECT_EQ(cut_off(1, 0), std::set<uint64_t>{});
    EXPECT_EQ(cut_off(1, 0b1), (std::set<uint64_t>{2, 3}));
    EXPECT_EQ(cut_off(4, 0b11), (std::set<uint64_t>{2, 3, 5}));
    table->caller_left(2);
    table->caller_left(3);
    EXPECT_EQ(cut_off(1, 0b1), std::set<uint64_t>{});
    // Who joins again is what it says last.
    ASSERT_EQ(ask(4, {.what = Ask::kJoin, .first = 64, .lease = id}).status, HANARE_STATUS_OK);
    EXPECT_EQ(cut_off(1, uint64_t{1} << 63), std::set<uint64_t>{4});
    EXPECT_EQ(cut_off(1, 0b10), std::set<uint64_t>{5});
}

TEST_F(LeaseTableTest, ThereIsALimitOfMembersConnections) {
    open(kGiB);
    const lease::LeaseId id = opened(1);
    for (uint64_t caller = 0; caller < LeaseTable::kMemberConnectionsMax; ++caller) {
        ASSERT_EQ(ask(100 + caller, {.what = Ask::kJoin, .first = 7, .lease = id}).status,
                  HANARE_STATUS_OK);
    }
    EXPECT_EQ(ask(99, {.what = Ask::kJoin, .first = 7, .lease = id}).status, HANARE_STATUS_LIMIT);
    EXPECT_EQ(ask(99, {.what = Ask::kJoin, .lease = id}).status, HANARE_STATUS_OK);
    EXPECT_EQ(ask(100, {.what = Ask::kJoin, .first = 8, .lease = id}).status, HANARE_STATUS_OK);
    table->caller_left(101);
    EXPECT_EQ(ask(99, {.what = Ask::kJoin, .first = 7, .lease = id}).status, HANARE_STATUS_OK);
}

TEST_F(LeaseTableTest, ThousandsOfOpens) {
    open(kGiB);
    size_t refused = 0;
    for (uint64_t i = 0; i < 5000; ++i) {
        const hanare_status status = ask(i / 50, {.what = Ask::kOpen, .lease = {}}).status;
        if (status == HANARE_STATUS_LIMIT) ++refused;
    }
    EXPECT_EQ(refused, 4000u);
    EXPECT_EQ(table->status().leases.size(), 1000u);
    for (uint64_t caller = 0; caller < 100; ++caller) table->caller_left(caller);
    EXPECT_EQ(table->status().leases.size(), 0u);
    EXPECT_EQ(table->status().leases_abandoned, 1000u);
}

TEST_F(LeaseTableTest, DrainsForGood) {
    open(kGiB);
    const lease::LeaseId id = opened(1);
    const auto extents = grow(id, 10 * kUnit).extents;
    EXPECT_FALSE(table->is_draining());
    EXPECT_EQ(ask(2, {.what = Ask::kDrain, .lease = {}}).answer.flags, lease::kDraining);
    EXPECT_TRUE(table->is_draining());
    EXPECT_TRUE(table->status().is_draining);
    EXPECT_EQ(ask(1, {.what = Ask::kOpen, .lease = {}}).status, HANARE_STATUS_BUSY);
    EXPECT_EQ(grow(id, 100 * kUnit).status, HANARE_STATUS_STORE_FULL);
    const Reply kept = grow(id, 10 * kUnit);
    EXPECT_EQ(kept.status, HANARE_STATUS_OK);
    EXPECT_EQ(kept.answer.flags, lease::kDraining);
    EXPECT_EQ(kept.answer.free_bytes, 0u);
    EXPECT_EQ(ask(1, {.what = Ask::kStatus, .lease = {}}).answer.flags, lease::kDraining);
    EXPECT_EQ(ask(2, {.what = Ask::kJoin, .lease = id}).answer.flags, lease::kDraining);
    EXPECT_EQ(enter(extents), HANARE_STATUS_OK);
    EXPECT_EQ(end(id), HANARE_STATUS_OK);
}

}  // namespace
}  // namespace hanare::server
