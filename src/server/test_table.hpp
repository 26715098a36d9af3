// SPDX-License-Identifier: Apache-2.0
//
// A table of leases without sockets, as tests ask it.  Included by *_test.cpp only.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/units.hpp"
#include "server/lease_table.hpp"
#include "server/test_support.hpp"

namespace hanare::server {

using lease::Ask;

constexpr uint64_t kUnit = lease::kExtentAlignmentBytes;

// A table over an arena whose thread runs only if the test wants it.
class LeaseTableTest : public testing::Test {
protected:
    struct Reply {
        hanare_status status = HANARE_STATUS_INTERNAL;
        lease::Answer answer;
        std::vector<lease::Extent> extents;
        std::vector<lease::StatusRow> rows;
    };

    ~LeaseTableTest() override { close(); }
    void close() {
        table.reset();
        if (arena == nullptr) return;
        arena->stop();
        if (thread.joinable()) thread.join();
        arena.reset();
    }
    void open(uint64_t bytes, const LeaseTable::Settings& settings = {}) {
        close();
        arena = Arena::open({.bytes = bytes}).value();
        table = std::make_unique<LeaseTable>(settings, *arena, regions);
    }
    void wipe() {
        if (!thread.joinable()) {
            thread = std::jthread([this] { arena->run(); });
        }
        ASSERT_TRUE(comes_true([this] { return arena->unwiped_bytes() == 0; }));
    }

    Reply ask(uint64_t caller, const lease::Question& question,
              size_t room_bytes = fabric::kMessageBytesMax) {
        std::vector<std::byte> room(room_bytes);
        Reply reply;
        size_t bytes = 0;
        reply.status =
            table->answer_call(caller, std::as_bytes(std::span(&question, 1)), room, bytes);
        check_sum();
        if (reply.status != HANARE_STATUS_OK) return reply;
        EXPECT_LE(bytes, room_bytes);
        std::memcpy(&reply.answer, room.data(), sizeof reply.answer);
        EXPECT_EQ(reply.answer.version, lease::kMessageVersion);
        EXPECT_EQ(reply.answer.server, table->status().server);
        if (question.what == Ask::kStatus) {
            read(reply.rows, room, bytes, reply.answer.count);
        } else {
            read(reply.extents, room, bytes, reply.answer.count);
        }
        return reply;
    }
    template <typename Entry>
    static void read(std::vector<Entry>& entries, std::span<const std::byte> room, size_t bytes,
                     size_t count) {
        ASSERT_EQ(bytes, sizeof(lease::Answer) + count * sizeof(Entry));
        entries.resize(count);
        if (count == 0) return;
        std::memcpy(entries.data(), room.data() + sizeof(lease::Answer), count * sizeof(Entry));
    }
    void check_sum() const {
        const LeaseTable::Status status = table->status();
        EXPECT_EQ(status.leased_bytes + status.free_bytes + status.unwiped_bytes + held_bytes,
                  status.total_bytes);
        uint64_t leased = 0;
        for (const LeaseTable::Row& row : status.leases) leased += row.bytes;
        EXPECT_EQ(leased, status.leased_bytes);
    }

    lease::LeaseId opened(uint64_t caller) {
        const Reply reply = ask(caller, {.what = Ask::kOpen, .lease = {}});
        EXPECT_EQ(reply.status, HANARE_STATUS_OK);
        return reply.answer.lease;
    }
    Reply grow(const lease::LeaseId& id, uint64_t bytes, uint32_t first = 0) {
        return ask(1, {.what = Ask::kGrow, .first = first, .lease = id, .bytes = bytes});
    }
    hanare_status end(const lease::LeaseId& id) {
        return ask(1, {.what = Ask::kEnd, .lease = id}).status;
    }
    hanare_status enter(const fabric::Capability& capability, uint64_t offset, uint64_t bytes,
                        fabric::ExposedRegions::Access& access) {
        return regions.enter(capability, fabric::kRead | fabric::kWrite, offset, bytes, access);
    }
    // Of all extents; BAD_KEY when one has it.
    hanare_status enter(const std::vector<lease::Extent>& extents) {
        for (const lease::Extent& extent : extents) {
            fabric::ExposedRegions::Access access;
            const hanare_status status = enter(extent.capability, 0, extent.bytes, access);
            if (status != HANARE_STATUS_OK) return status;
        }
        return HANARE_STATUS_OK;
    }

    fabric::ExposedRegions regions;
    std::unique_ptr<Arena> arena;
    std::unique_ptr<LeaseTable> table;
    std::jthread thread;
    uint64_t held_bytes = 0;  // by the test, which has got them from the arena itself
};

}  // namespace hanare::server
