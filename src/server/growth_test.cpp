// SPDX-License-Identifier: Apache-2.0
//
// How leases grow, and that no byte gets lost.
#include "server/growth.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "server/test_table.hpp"

namespace hanare::server {
namespace {

TEST_F(LeaseTableTest, GrowsByMoreThanAskedForWhereThereIsPlenty) {
    open(64 * kGiB);
    const lease::LeaseId id = opened(1);
    // Of so much a thousand leases could each have it.
    EXPECT_EQ(grow(id, 1).answer.leased_bytes, 64 * kMiB);
    EXPECT_EQ(grow(id, 64 * kMiB).answer.leased_bytes, 64 * kMiB);
    EXPECT_EQ(grow(id, 64 * kMiB + 1).answer.leased_bytes, 124 * kMiB);
    EXPECT_EQ(grow(id, kGiB + 1).answer.leased_bytes, kGiB + kUnit);
    // A quarter of what it has.
    EXPECT_EQ(grow(id, kGiB + 2 * kUnit).answer.leased_bytes, 1284 * kMiB);
    EXPECT_EQ(grow(id, 32 * kGiB).answer.leased_bytes, 32 * kGiB);
    // An eighth of what there is.
    EXPECT_EQ(grow(id, 32 * kGiB + 1).answer.leased_bytes, 36 * kGiB);
    EXPECT_EQ(grow(id, 64 * kGiB - 48 * kMiB).answer.leased_bytes, 64 * kGiB - 48 * kMiB);
    EXPECT_EQ(grow(id, 64 * kGiB - 48 * kMiB + 1).answer.leased_bytes, 64 * kGiB - 44 * kMiB);
    EXPECT_EQ(grow(id, 64 * kGiB).answer.leased_bytes, 64 * kGiB);
}

// And knows no more than what it asks for next.
TEST_F(LeaseTableTest, OneClientHasAllOfItByPiecesOf4MiB) {
    for (const uint64_t bytes : {8 * kGiB, 64 * kGiB, 1024 * kGiB}) {
        open(bytes);
        const lease::LeaseId id = opened(1);
        uint64_t leased = 0;
        while (leased < bytes) {
            const Reply reply = grow(id, leased + kUnit);
            ASSERT_EQ(reply.status, HANARE_STATUS_OK)
                << leased / kMiB << " of " << bytes / kMiB << " MiB";
            leased = reply.answer.leased_bytes;
        }
        EXPECT_EQ(grow(id, bytes + 1).status, HANARE_STATUS_STORE_FULL);
    }
}

TEST_F(LeaseTableTest, NeverByMoreThanTheQuota) {
    open(64 * kGiB, {.quota_bytes = 68 * kMiB});
    const lease::LeaseId id = opened(1);
    EXPECT_EQ(grow(id, 1).answer.leased_bytes, 64 * kMiB);
    EXPECT_EQ(grow(id, 64 * kMiB + 1).answer.leased_bytes, 68 * kMiB);
}

TEST_F(LeaseTableTest, BusyWhereWipingWouldDo) {
    open(64 * kMiB);
    const lease::LeaseId id = opened(1);
    const lease::LeaseId other = opened(1);
    ASSERT_EQ(grow(id, 40 * kMiB).status, HANARE_STATUS_OK);
    ASSERT_EQ(grow(other, 8 * kMiB).status, HANARE_STATUS_OK);
    ASSERT_EQ(end(id), HANARE_STATUS_OK);
    EXPECT_EQ(grow(other, 64 * kMiB + 1).status, HANARE_STATUS_STORE_FULL);
    EXPECT_EQ(grow(other, 64 * kMiB).status, HANARE_STATUS_BUSY);
    EXPECT_EQ(grow(other, 24 * kMiB).answer.leased_bytes, 24 * kMiB);
    EXPECT_EQ(grow(other, 28 * kMiB).status, HANARE_STATUS_BUSY);
    wipe();
    EXPECT_EQ(grow(other, 64 * kMiB).answer.leased_bytes, 64 * kMiB);
    EXPECT_EQ(table->status().refusals, 3u);
}

TEST(Growth, CasesAtTheEdges) {
    const auto growth = [](uint64_t wanted, uint64_t leased, uint64_t quota, uint64_t free,
                           uint64_t unwiped, uint64_t tenant_left = UINT64_MAX) {
        return growth_of(
            {.wanted_bytes = wanted,
             .leased_bytes = leased,
             .quota_bytes = quota,
             .tenant_left_bytes = tenant_left,
             .room = {.free_bytes = free, .largest_bytes = free, .unwiped_bytes = unwiped}});
    };
    EXPECT_EQ(growth(kUnit, 0, kUnit, 64 * kGiB, 0).best_bytes, kUnit);
    EXPECT_EQ(growth(kUnit, 0, kUnit - 1, kGiB, 0).status, HANARE_STATUS_STORE_FULL);
    EXPECT_EQ(growth(UINT64_MAX, 0, UINT64_MAX, kGiB, kGiB).status, HANARE_STATUS_STORE_FULL);
    EXPECT_EQ(growth(2 * kUnit, 0, UINT64_MAX, kUnit, kUnit).status, HANARE_STATUS_BUSY);
    EXPECT_EQ(growth(2 * kUnit + 1, 0, UINT64_MAX, kUnit, kUnit).status, HANARE_STATUS_STORE_FULL);
    EXPECT_EQ(growth(2 * kUnit, kUnit, UINT64_MAX, kUnit, 0).least_bytes, kUnit);
    EXPECT_EQ(growth(kUnit + 1, 0, UINT64_MAX, kGiB, 0, kUnit).status, HANARE_STATUS_STORE_FULL);
    EXPECT_EQ(growth(kUnit, 0, UINT64_MAX, kGiB, 0, kUnit).best_bytes, kUnit);
    // A part of what the tenant may still have.
    EXPECT_EQ(growth(kGiB + 1, kGiB, UINT64_MAX, 64 * kGiB, 0, kGiB).best_bytes, 128 * kMiB);
}

// ---- fragments

// Small enough that leases get what they ask for.
TEST_F(LeaseTableTest, SeveralExtentsWhereNoPieceIsLargeEnough) {
    open(16 * kUnit);
    std::vector<lease::LeaseId> ids;
    for (size_t i = 0; i < 16; ++i) {
        ids.push_back(opened(1));
        ASSERT_EQ(grow(ids[i], kUnit).answer.leased_bytes, kUnit);
    }
    for (size_t i = 0; i < 16; ++i) {
        if (i % 2 == 0 || i == 5) {
            ASSERT_EQ(end(ids[i]), HANARE_STATUS_OK);
        }
    }
    wipe();
    // There are a piece of three units and six of one.
    const lease::LeaseId id = opened(1);
    EXPECT_EQ(grow(id, 9 * kUnit + 1).status, HANARE_STATUS_STORE_FULL);
    EXPECT_EQ(table->status().free_bytes, 9 * kUnit);
    EXPECT_EQ(arena->largest_bytes(), 3 * kUnit);
    const Reply reply = grow(id, 9 * kUnit);
    ASSERT_EQ(reply.status, HANARE_STATUS_OK);
    ASSERT_EQ(reply.extents.size(), 7u);
    EXPECT_EQ(reply.extents[0].bytes, 3 * kUnit);
    EXPECT_EQ(reply.answer.leased_bytes, 9 * kUnit);
    EXPECT_EQ(enter(reply.extents), HANARE_STATUS_OK);
    EXPECT_EQ(table->status().free_bytes, 0u);
    ASSERT_EQ(end(id), HANARE_STATUS_OK);
    wipe();
    EXPECT_EQ(arena->free_bytes(), 9 * kUnit);
}

class FragmentsTest : public LeaseTableTest {
protected:
    // So many pieces of one unit are free.
    void open_with(size_t pieces) {
        open(2 * pieces * kUnit);
        for (size_t i = 0; i < pieces; ++i) {
            const auto free = arena->allocate(kUnit).value();
            EXPECT_TRUE(arena->allocate(kUnit));
            frees.push_back(free);
        }
        for (const auto free : frees) arena->give_back_untouched(free);
        held_bytes = pieces * kUnit;
    }
    std::vector<std::span<std::byte>> frees;
};

TEST_F(FragmentsTest, ALeaseHasNoMoreThanItMay) {
    constexpr size_t kMost = lease::kExtentsMax;
    open_with(kMost + 44);
    const lease::LeaseId id = opened(1);
    EXPECT_EQ(grow(id, (kMost + 1) * kUnit).status, HANARE_STATUS_LIMIT);
    EXPECT_EQ(table->status().leased_bytes, 0u);
    EXPECT_EQ(table->status().free_bytes, (kMost + 44) * kUnit);
    ASSERT_EQ(grow(id, 100 * kUnit).answer.extents, 100u);
    EXPECT_EQ(grow(id, (kMost + 1) * kUnit).status, HANARE_STATUS_LIMIT);
    EXPECT_EQ(table->status().leased_bytes, 100 * kUnit);
    const Reply most = grow(id, kMost * kUnit);
    ASSERT_EQ(most.status, HANARE_STATUS_OK);
    EXPECT_EQ(most.answer.extents, kMost);
    EXPECT_EQ(most.extents.size(), lease::kExtentsPerAnswer);
    EXPECT_EQ(most.answer.free_bytes, 0u);
    EXPECT_EQ(grow(id, kMost * kUnit + 1).status, HANARE_STATUS_LIMIT);
    // Answer by answer, each extent once.
    std::set<uint32_t> numbers;
    while (numbers.size() < kMost) {
        const Reply part = ask(
            1,
            {.what = Ask::kExtents, .first = static_cast<uint32_t>(numbers.size()), .lease = id});
        ASSERT_FALSE(part.extents.empty());
        EXPECT_EQ(enter(part.extents), HANARE_STATUS_OK);
        for (const lease::Extent& extent : part.extents) {
            EXPECT_TRUE(numbers.insert(extent.capability.region).second);
        }
    }
}

TEST_F(FragmentsTest, AllOrNothingWhereRegionsAreFew) {
    open_with(8);
    std::vector<uint32_t> others;
    while (others.size() < fabric::kRegionsMax - 3) {
        others.push_back(regions.expose(frees[0], fabric::kRead).value());
    }
    const lease::LeaseId id = opened(1);
    EXPECT_EQ(grow(id, 4 * kUnit).status, HANARE_STATUS_LIMIT);
    EXPECT_EQ(table->status().leased_bytes, 0u);
    EXPECT_EQ(table->status().free_bytes, 8 * kUnit);
    const Reply three = grow(id, 3 * kUnit);
    EXPECT_EQ(three.extents.size(), 3u);
    EXPECT_EQ(enter(three.extents), HANARE_STATUS_OK);
    EXPECT_EQ(grow(id, 4 * kUnit).status, HANARE_STATUS_LIMIT);
    ASSERT_TRUE(regions.conceal(others.back()));
    EXPECT_EQ(grow(id, 4 * kUnit).status, HANARE_STATUS_OK);
}

// ---- at random

// What a test believes of the table, and finds.
class ModelTest : public LeaseTableTest {
protected:
    struct Known {
        lease::LeaseId id;
        uint64_t bytes = 0;
        std::set<uint64_t> callers;
    };
    static constexpr uint64_t kTotal = 256 * kMiB;
    static constexpr uint64_t kQuota = 120 * kMiB;

    uint64_t known_bytes() const {
        uint64_t bytes = 0;
        for (const auto& [number, known] : leases) bytes += known.bytes;
        return bytes;
    }
    Known* any() {
        if (leases.empty()) return nullptr;
        auto it = leases.begin();
        std::advance(it, static_cast<ptrdiff_t>(prng.below(leases.size())));
        return &it->second;
    }
    void step() {
        const uint64_t caller = prng.below(5);
        Known* const known = any();
        switch (prng.below(8)) {
            case 0:
            case 1: open_one(caller); break;
            case 2: close_one(caller); break;
            case 3:
                if (known != nullptr) join(*known, caller);
                break;
            case 4:
                if (known == nullptr) break;
                ASSERT_EQ(end(known->id), HANARE_STATUS_OK);
                leases.erase(known->id.number);
                break;
            default:
                if (known != nullptr) grow_one(*known);
        }
    }
    void open_one(uint64_t caller) {
        const lease::LeaseId id = opened(caller);
        leases[id.number] = {.id = id, .callers = {caller}};
    }
    void join(Known& known, uint64_t caller) {
        ASSERT_EQ(ask(caller, {.what = Ask::kJoin, .lease = known.id}).status, HANARE_STATUS_OK);
        known.callers.insert(caller);
    }
    void close_one(uint64_t caller) {
        table->caller_left(caller);
        for (auto& [number, known] : leases) known.callers.erase(caller);
        std::erase_if(leases, [](const auto& entry) { return entry.second.callers.empty(); });
    }
    void grow_one(Known& known) {
        const uint64_t wanted = prng.below(kQuota + 3 * kUnit);
        const uint64_t left = kTotal - known_bytes();
        const Reply reply = grow(known.id, wanted);
        if (wanted <= known.bytes) {
            ASSERT_EQ(reply.status, HANARE_STATUS_OK);
            ASSERT_EQ(reply.answer.leased_bytes, known.bytes);
            return;
        }
        const uint64_t missing = round_up(wanted, kUnit) - known.bytes;
        if (wanted > kQuota || missing > left) {
            ASSERT_EQ(reply.status, HANARE_STATUS_STORE_FULL);
            return;
        }
        // What is free depends on how far the other thread has come.
        if (reply.status == HANARE_STATUS_BUSY) return;
        ASSERT_EQ(reply.status, HANARE_STATUS_OK);
        ASSERT_GE(reply.answer.leased_bytes, wanted);
        ASSERT_LE(reply.answer.leased_bytes, kQuota);
        check_content(reply.extents, known.bytes);
        known.bytes = reply.answer.leased_bytes;
        ++grown;
    }
    // Extents behind `old_bytes` hold zeros, and then their region's number and epoch.
    void check_content(const std::vector<lease::Extent>& extents, uint64_t old_bytes) {
        uint64_t at = 0;
        for (const lease::Extent& extent : extents) {
            const uint64_t mark =
                uint64_t{extent.capability.epoch} << 32 | (extent.capability.region + 1);
            fabric::ExposedRegions::Access access;
            ASSERT_EQ(enter(extent.capability, 0, extent.bytes, access), HANARE_STATUS_OK);
            for (uint64_t page = 0; page < extent.bytes; page += 16 * kOsPageBytes) {
                uint64_t word = 0;
                std::memcpy(&word, access.address() + page, sizeof word);
                ASSERT_EQ(word, at < old_bytes ? mark : 0);
                std::memcpy(access.address() + page, &mark, sizeof mark);
            }
            at += extent.bytes;
        }
    }

    Prng prng{20};
    std::map<uint64_t, Known> leases;
    size_t grown = 0;
};

TEST_F(ModelTest, NoByteIsLost) {
    open(kTotal, {.quota_bytes = kQuota});
    thread = std::jthread([this] { arena->run(); });
    for (int i = 0; i < 1000; ++i) {
        step();
        ASSERT_FALSE(HasFatalFailure()) << i;
        const LeaseTable::Status status = table->status();
        ASSERT_EQ(status.leases.size(), leases.size());
        ASSERT_EQ(status.leased_bytes, known_bytes());
        for (const LeaseTable::Row& row : status.leases) {
            ASSERT_EQ(row.bytes, leases.at(row.number).bytes);
            ASSERT_EQ(row.connections, leases.at(row.number).callers.size());
        }
        if (i % 50 == 0) wipe();
    }
    EXPECT_GT(grown, 50u);
    for (uint64_t caller = 0; caller < 5; ++caller) close_one(caller);
    EXPECT_TRUE(leases.empty());
    wipe();
    EXPECT_EQ(table->status().free_bytes, kTotal);
    EXPECT_EQ(arena->largest_bytes(), kTotal);
    const LeaseTable::Status status = table->status();
    EXPECT_EQ(status.leases_opened, status.leases_ended + status.leases_abandoned);
}

}  // namespace
}  // namespace hanare::server
