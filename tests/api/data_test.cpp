// SPDX-License-Identifier: Apache-2.0
//
// What is written is read back, new memory is zero, and every fault and transfer is counted once.
#include "api/far_pool.hpp"

namespace hanare::api_test {

namespace {

class DataTest : public SetupTest {
protected:
    static constexpr uint64_t kFrames = 20;
    static constexpr uint64_t kBlocks = 36;

    uint64_t block_bytes() const { return GetParam().block_bytes; }
    uint64_t region_bytes() const { return kBlocks * block_bytes(); }
};

API_TEST_WITH_SETUPS(DataTest);

TEST_P(DataTest, NewMemoryIsZeroAndKeepsWhatIsWritten) {
    FarPool pool(GetParam(), kFrames, region_bytes(), 8);
    uint64_t* const words = pool.alloc_words(region_bytes());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(words) % block_bytes(), 0u);
    EXPECT_EQ(non_zeros(words, region_bytes()), 0u);
    EXPECT_EQ(pool.stats().written_bytes, 0u);
    fill(words, region_bytes(), 1);
    EXPECT_EQ(mismatches(words, region_bytes(), 1), 0u);
    fill(words, region_bytes(), 2);
    EXPECT_EQ(mismatches(words, region_bytes(), 2), 0u);
    const hanare_counters stats = pool.stats();
    EXPECT_GE(stats.write_backs, 2 * (kBlocks - kFrames));
    EXPECT_LE(stats.resident_bytes + stats.metadata_bytes, stats.budget_bytes);
    EXPECT_LE(stats.frame_bytes + stats.metadata_bytes, stats.budget_bytes);
    EXPECT_EQ(stats.virtual_bytes, region_bytes());
    EXPECT_EQ(stats.checksum_errors + stats.store_errors, 0u);
}

TEST_P(DataTest, FreedMemoryComesBackAsZeros) {
    FarPool pool(GetParam(), kFrames, region_bytes());
    for (uint64_t round = 0; round < 3; ++round) {
        uint64_t* const words = pool.alloc_words(region_bytes());
        ASSERT_EQ(non_zeros(words, region_bytes()), 0u) << "round " << round;
        fill(words, region_bytes(), round);
        must(hanare_free(pool.get(), words));
        const hanare_counters stats = pool.stats();
        EXPECT_EQ(stats.virtual_bytes, 0u);
        EXPECT_EQ(stats.resident_bytes, 0u);
        EXPECT_EQ(stats.dirty_bytes, 0u);
    }
}

// Everything fits and nothing is read ahead, so each step costs exactly one event per block.
TEST_P(DataTest, EveryFaultAndTransferIsCounted) {
    constexpr uint64_t kCount = kFramesMin;
    const uint64_t bytes = kCount * block_bytes();
    FarPool pool(GetParam(), kFrames + kFramesMin, bytes);
    std::byte* const region = pool.alloc(bytes);
    const auto touch_all = [&] {
        for (uint64_t i = 0; i < kCount; ++i) touch(region, block_bytes(), i);
    };
    const auto poke_all = [&](uint64_t value) {
        for (uint64_t i = 0; i < kCount; ++i) poke(region, block_bytes(), i, value);
    };
    touch_all();
    touch_all();
    hanare_counters stats = pool.stats();
    EXPECT_EQ(stats.read_faults, kCount);
    EXPECT_EQ(stats.zero_fills, kCount);
    EXPECT_EQ(stats.write_faults + stats.upgrade_faults, 0u);
    EXPECT_EQ(stats.resident_bytes, bytes);
    EXPECT_EQ(stats.dirty_bytes, 0u);

    poke_all(1);
    poke_all(2);
    stats = pool.stats();
    EXPECT_EQ(stats.upgrade_faults, kCount);
    EXPECT_EQ(stats.read_faults + stats.write_faults, kCount);
    EXPECT_EQ(stats.dirty_bytes, bytes);

    must(hanare_flush(pool.get(), region, bytes));
    stats = pool.stats();
    EXPECT_EQ(stats.write_backs, kCount);
    EXPECT_EQ(stats.written_bytes, bytes);
    EXPECT_EQ(stats.dirty_bytes, 0u);
    EXPECT_EQ(stats.resident_bytes, bytes);

    pool.make_absent(region, bytes);
    stats = pool.stats();
    EXPECT_EQ(stats.resident_bytes, 0u);
    EXPECT_EQ(stats.clean_drops, kCount);
    EXPECT_EQ(stats.write_backs, kCount);

    poke_all(3);
    stats = pool.stats();
    EXPECT_EQ(stats.write_faults, kCount);
    EXPECT_EQ(stats.demand_reads, kCount);
    EXPECT_EQ(stats.read_bytes, bytes);
    EXPECT_EQ(stats.zero_fills, kCount);
    EXPECT_EQ(stats.evictions_inline, 0u);
    EXPECT_EQ(stats.prefetch_reads, 0u);
    // A thread that waits in the kernel may wake up too early and fault again.
    const bool may_wait = serves_system_calls(GetParam().engine);
    EXPECT_TRUE(may_wait || stats.wait_faults == 0) << stats.wait_faults;
    EXPECT_EQ(touch(region, block_bytes(), kCount - 1), 3u);
}

TEST_P(DataTest, ReadingNeverWritesBack) {
    FarPool pool(GetParam(), kFrames, region_bytes(), 4);
    uint64_t* const words = pool.alloc_words(region_bytes());
    fill(words, region_bytes(), 7);
    must(hanare_flush(pool.get(), nullptr, 0));
    const hanare_counters before = pool.stats();
    for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(mismatches(words, region_bytes(), 7), 0u);
    const hanare_counters after = pool.stats();
    EXPECT_EQ(after.write_backs, before.write_backs);
    EXPECT_EQ(after.written_bytes, before.written_bytes);
    EXPECT_EQ(after.dirty_bytes, 0u);
    EXPECT_GT(after.clean_drops + after.prefetch_unused, before.clean_drops);
    EXPECT_GE(after.read_bytes - before.read_bytes, (kBlocks - kFrames) * block_bytes());
}

}  // namespace

}  // namespace hanare::api_test
