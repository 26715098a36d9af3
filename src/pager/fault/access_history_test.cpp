// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/access_history.hpp"

#include <gtest/gtest.h>

#include "pager/fault/region.hpp"

namespace hanare::pager {
namespace {

constexpr uint64_t kParts = 64;

AccessHistory::Place place(uint32_t block, uint32_t part, uint32_t beside = 0) {
    return {block, uint64_t{block} * kParts + part, beside};
}

class AccessHistoryTest : public ::testing::Test {
protected:
    bool note(uint32_t block, uint32_t part, bool in_stream = false, bool in_run = false) {
        return history_.note(region(), place(block, part), in_stream, in_run);
    }
    bool expects_random(uint32_t block, uint32_t part) {
        return history_.expects_random(region(), place(block, part));
    }
    void make_random() {
        for (uint32_t block = 10; block < 50; block += 10) note(block, 7);
    }
    void SetUp() override { region_.parts_per_block = kParts; }
    const Region& region() const { return region_; }

    AccessHistory history_ = {};
    Region region_;
};

TEST_F(AccessHistoryTest, IsRandomAfterThreeFaultsHereAndThere) {
    EXPECT_FALSE(note(10, 1));
    EXPECT_FALSE(note(90, 5));
    EXPECT_TRUE(note(40, 9));
    EXPECT_TRUE(expects_random(70, 0));
}

TEST_F(AccessHistoryTest, IsNotChangedByTheSamePlaceOnceMore) {
    make_random();
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(note(40, 7));
    EXPECT_TRUE(expects_random(40, 7)) << "the write after a read begins no stream";
    EXPECT_TRUE(note(80, 3));
}

TEST_F(AccessHistoryTest, EndsWithTwoSteps) {
    make_random();
    EXPECT_FALSE(expects_random(40, 8)) << "goes on from the last";
    EXPECT_TRUE(note(40, 8));
    EXPECT_TRUE(note(40, 8));
    EXPECT_FALSE(note(40, 9));
    EXPECT_FALSE(expects_random(80, 0));
}

TEST_F(AccessHistoryTest, EndsWithEqualStepsThroughEveryBlock) {
    for (const uint32_t step : {8U, 24U}) {
        history_ = {};
        make_random();
        const auto at = [&](uint32_t count) { return place(80, 0).part + count * step; };
        const auto note_step = [&](uint32_t count) {
            const uint64_t part = at(count);
            return note(static_cast<uint32_t>(part / kParts), static_cast<uint32_t>(part % kParts));
        };
        EXPECT_TRUE(note_step(0));
        EXPECT_TRUE(note_step(1)) << "as far as ever";
        EXPECT_TRUE(note_step(2));
        bool is_random = true;
        for (uint32_t count = 3; count < 8; ++count) is_random = note_step(count);
        EXPECT_FALSE(is_random);
    }
}

TEST_F(AccessHistoryTest, DoesNotEndWithStepsBeyondTheNextBlock) {
    for (uint32_t block = 10; block < 400; block += 3) note(block, 7);
    EXPECT_TRUE(history_.is_random(region()));
}

TEST_F(AccessHistoryTest, EndsWithARun) {
    make_random();
    EXPECT_FALSE(note(80, 9, false, true));
}

TEST_F(AccessHistoryTest, ShortRunsAmongRandomFaultsChangeNothing) {
    make_random();
    for (uint32_t block = 100; block < 1000; block += 20) {
        note(block, 20);
        note(block + 7, 30);
        note(block + 7, 31);
        note(block + 7, 32);
        EXPECT_TRUE(history_.is_random(region())) << block;
    }
}

TEST_F(AccessHistoryTest, EndsWithStreamsThatTakeTurns) {
    make_random();
    bool is_random = true;
    for (uint32_t part = 0; part < 6; ++part) {
        for (uint32_t stream = 0; stream < 14; ++stream) is_random = note(100 + 9 * stream, part);
    }
    EXPECT_FALSE(is_random);
}

TEST_F(AccessHistoryTest, StreamsThatTakeTurnsAreKnownBesideRandomFaults) {
    make_random();
    bool is_random = true;
    uint32_t elsewhere = 3000;
    for (uint32_t part = 0; part < 12; ++part) {
        for (uint32_t stream = 0; stream < 8; ++stream) {
            is_random = note(100 + 9 * stream, part);
            if (stream % 4 == 0) note(elsewhere += 20, 7);
        }
    }
    EXPECT_FALSE(is_random);
}

TEST_F(AccessHistoryTest, StepsLeadOverWhatIsThere) {
    for (const bool is_there : {true, false}) {
        history_ = {};
        make_random();
        bool is_random = true;
        for (const uint32_t part : {0U, 1U, 2U, 5U, 11U, 23U, 39U, 55U}) {
            for (uint32_t stream = 0; stream < 8; ++stream) {
                const uint32_t block = 200 + 9 * stream + (is_there ? 0 : 300);
                is_random =
                    history_.note(region(), place(block, part, is_there ? part : 0), false, false);
            }
        }
        EXPECT_EQ(is_random, !is_there);
    }
}

TEST_F(AccessHistoryTest, AFirstWriteAfterAReadChangesNothingAmongTurnsEither) {
    make_random();
    for (uint32_t part = 0; part < 3; ++part) {
        for (int pass = 0; pass < 2; ++pass) {
            for (uint32_t stream = 0; stream < 8; ++stream) note(100 + 9 * stream, part);
        }
    }
    bool is_random = true;
    for (uint32_t part = 3; part < 6; ++part) {
        for (uint32_t stream = 0; stream < 8; ++stream) is_random = note(100 + 9 * stream, part);
    }
    EXPECT_FALSE(is_random);
}

TEST_F(AccessHistoryTest, ObjectsOfAFewPagesThatAreUsedByTurnsAreNoStreams) {
    make_random();
    for (uint32_t object = 0; object < 50; ++object) {
        for (uint32_t part = 0; part < 3; ++part) {
            for (uint32_t other = 0; other < 4; ++other)
                note(100 + 30 * object + 7 * other, 20 + part);
        }
        EXPECT_TRUE(history_.is_random(region())) << object;
    }
}

TEST_F(AccessHistoryTest, GoesOnToTheEdgeOfANeighbouringBlockOrTheSamePlaceInIt) {
    make_random();
    note(200, 60);
    EXPECT_FALSE(expects_random(201, 0));
    EXPECT_FALSE(expects_random(199, 63));
    EXPECT_FALSE(expects_random(201, 61));
    EXPECT_TRUE(expects_random(201, 30));
    EXPECT_TRUE(expects_random(199, 0));
}

}  // namespace
}  // namespace hanare::pager
