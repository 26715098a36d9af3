// SPDX-License-Identifier: Apache-2.0
//
// Pins: they nest, they hold under pressure, they end where the budget does, and nothing that they
// protect can be taken away.
#include "api/far_pool.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 16 * kKiB;
constexpr uint64_t kBlocks = 128;
constexpr uint64_t kBytes = kBlocks * kBlock;
constexpr uint64_t kFrames = 32;

class PinTest : public EngineTest {
protected:
    void SetUp() override {
        EngineTest::SetUp();
        if (IsSkipped()) return;
        pool_ = std::make_unique<FarPool>(setup(kBlock), kFrames, kBytes);
        region_ = pool_->alloc(kBytes);
        fill(words(), kBytes, 3);
        pool_->make_absent(region_, kBytes);
    }
    uint64_t* words() { return reinterpret_cast<uint64_t*>(region_); }
    hanare_status pin(uint64_t first, uint64_t count, hanare_access access) {
        return hanare_pin(pool_->get(), region_ + first * kBlock, count * kBlock, access);
    }
    hanare_status unpin(uint64_t first, uint64_t count) {
        return hanare_unpin(pool_->get(), region_ + first * kBlock, count * kBlock);
    }
    uint64_t faults() {
        const hanare_counters stats = pool_->stats();
        return stats.read_faults + stats.write_faults + stats.upgrade_faults + stats.wait_faults;
    }

    std::unique_ptr<FarPool> pool_;
    std::byte* region_ = nullptr;
};

API_TEST_WITH_ENGINES(PinTest);

TEST_P(PinTest, PinnedBlocksSurvivePressureWithoutFaults) {
    must(pin(4, 4, HANARE_ACCESS_READ));
    must(pin(60, 4, HANARE_ACCESS_WRITE));
    EXPECT_EQ(pool_->stats().pinned_bytes, 8 * kBlock);
    for (int pass = 0; pass < 2; ++pass) {
        for (uint64_t i = 64; i < kBlocks; ++i) touch(region_, kBlock, i);
    }
    const uint64_t before = faults();
    for (uint64_t i = 4; i < 8; ++i) {
        EXPECT_EQ(touch(region_, kBlock, i), pattern(3, i * kBlock / 8));
    }
    for (uint64_t i = 60; i < 64; ++i) poke(region_, kBlock, i, i);
    EXPECT_EQ(faults(), before);
    must(unpin(4, 4));
    must(unpin(60, 4));
    EXPECT_EQ(pool_->stats().pinned_bytes, 0u);
    pool_->make_absent(region_, kBytes);
    EXPECT_EQ(pool_->stats().resident_bytes, 0u);
    for (uint64_t i = 60; i < 64; ++i) EXPECT_EQ(touch(region_, kBlock, i), i);
}

TEST_P(PinTest, PinsNest) {
    must(pin(0, 4, HANARE_ACCESS_READ));
    must(pin(2, 4, HANARE_ACCESS_WRITE));
    must(pin(0, 1, HANARE_ACCESS_READ));
    EXPECT_EQ(pool_->stats().pinned_bytes, 6 * kBlock);
    must(unpin(0, 4));
    EXPECT_EQ(pool_->stats().pinned_bytes, 5 * kBlock);
    must(unpin(2, 4));
    EXPECT_EQ(pool_->stats().pinned_bytes, kBlock);
    must(unpin(0, 1));
    EXPECT_EQ(pool_->stats().pinned_bytes, 0u);
    EXPECT_EQ(unpin(0, 1), HANARE_STATUS_INVALID_ARGUMENT);
}

TEST_P(PinTest, ManyPinsOfOneBlock) {
    constexpr int kPins = 70'000;
    for (int i = 0; i < kPins; ++i) must(pin(9, 1, HANARE_ACCESS_READ));
    EXPECT_EQ(pool_->stats().pinned_bytes, kBlock);
    for (int i = 0; i < kPins; ++i) must(unpin(9, 1));
    EXPECT_TRUE(fails_with(HANARE_STATUS_INVALID_ARGUMENT, {"block 9 is not pinned"}, unpin(9, 1)));
}

TEST_P(PinTest, TooManyPinsAreRefusedAndUndone) {
    EXPECT_TRUE(fails_with(HANARE_STATUS_LIMIT, {"cannot pin", "a limit of the pool", "budget of"},
                           pin(0, kBlocks, HANARE_ACCESS_READ)));
    EXPECT_EQ(pool_->stats().pinned_bytes, 0u);
    // At least 16 frames must stay free to move.
    EXPECT_EQ(pin(0, kFrames - kFramesMin + 4, HANARE_ACCESS_READ), HANARE_STATUS_LIMIT);
    must(pin(0, kFrames - kFramesMin - 1, HANARE_ACCESS_WRITE));
    EXPECT_EQ(pin(64, 8, HANARE_ACCESS_READ), HANARE_STATUS_LIMIT);
    must(pin(0, kFrames - kFramesMin - 1, HANARE_ACCESS_READ));  // no further frame
    EXPECT_EQ(mismatches(words(), kBytes, 3), 0u);
    must(unpin(0, kFrames - kFramesMin - 1));
    must(unpin(0, kFrames - kFramesMin - 1));
    must(pin(64, 8, HANARE_ACCESS_READ));
    must(unpin(64, 8));
}

TEST_P(PinTest, WhatIsPinnedCannotBeFreedOrClosed) {
    must(pin(1, 2, HANARE_ACCESS_READ));
    EXPECT_TRUE(fails_with(HANARE_STATUS_BUSY, {"cannot be freed", "2 of its blocks are pinned"},
                           hanare_free(pool_->get(), region_)));
    EXPECT_TRUE(fails_with(HANARE_STATUS_BUSY, {"cannot be closed", "32 KiB are pinned"},
                           hanare_pool_close(pool_->get())));
    EXPECT_EQ(mismatches(words(), kBytes, 3), 0u);
    must(unpin(1, 2));
    must(hanare_free(pool_->get(), region_));
}

TEST_P(PinTest, UnpinOfWhatIsNotPinnedChangesNothing) {
    EXPECT_TRUE(fails_with(HANARE_STATUS_INVALID_ARGUMENT,
                           {"cannot unpin", "block 0 is not pinned"}, unpin(0, 1)));
    must(pin(5, 1, HANARE_ACCESS_READ));
    EXPECT_TRUE(fails_with(HANARE_STATUS_INVALID_ARGUMENT, {"block 6 is not pinned"}, unpin(5, 2)));
    EXPECT_EQ(pool_->stats().pinned_bytes, kBlock);
    must(unpin(5, 1));
}

// At the limit, where a pin succeeds only because another thread holds one of the same block.
TEST_P(PinTest, ThreadsThatPinTheSameBlockAtTheLimitKeepTheAccountStraight) {
    constexpr uint64_t kHeld = kFrames - kFramesMin - 1;
    must(pin(0, kHeld, HANARE_ACCESS_READ));
    uint64_t spare = 0;
    while (pin(kHeld + spare, 1, HANARE_ACCESS_READ) == HANARE_STATUS_OK) ++spare;
    must(unpin(0, 1));
    const auto pin_and_unpin = [&] {
        for (int i = 0; i < 20'000; ++i) {
            if (pin(0, 1, HANARE_ACCESS_READ) == HANARE_STATUS_OK) must(unpin(0, 1));
            if (pin(100, 1, HANARE_ACCESS_READ) == HANARE_STATUS_OK) must(unpin(100, 1));
        }
    };
    run_threads({pin_and_unpin, pin_and_unpin, pin_and_unpin});
    EXPECT_EQ(pool_->stats().pinned_bytes, (kHeld + spare - 1) * kBlock);
    must(pin(0, 1, HANARE_ACCESS_READ));
    EXPECT_EQ(pin(100, 1, HANARE_ACCESS_READ), HANARE_STATUS_LIMIT);
    must(unpin(0, kHeld + spare));
    // TearDown closes the pool, which fails if a pin is still on the account.
}

// A write pin grants the right to write, a read pin of a clean block does not pretend it is dirty.
TEST_P(PinTest, AccessDecidesWhatIsDirty) {
    must(pin(0, 1, HANARE_ACCESS_READ));
    EXPECT_EQ(pool_->stats().dirty_bytes, 0u);
    must(pin(0, 1, HANARE_ACCESS_WRITE));
    EXPECT_EQ(pool_->stats().dirty_bytes, kBlock);
    must(unpin(0, 1));
    must(unpin(0, 1));
    EXPECT_EQ(mismatches(words(), kBytes, 3), 0u);
}

}  // namespace

}  // namespace hanare::api_test
