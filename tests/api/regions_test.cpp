// SPDX-License-Identifier: Apache-2.0
//
// Several regions in one pool, and several pools in one process.
#include <cstring>
#include <vector>

#include "api/far_pool.hpp"

namespace hanare::api_test {

namespace {

const char* other_engine(const char* engine) {
    for (const char* other : all_engines()) {
        if (std::strcmp(other, engine) != 0 && engine_refusal(other).empty()) return other;
    }
    return engine;
}

class RegionsTest : public EngineTest {};
API_TEST_WITH_ENGINES(RegionsTest);

struct SizedRegion {
    uint64_t* words;
    uint64_t block_bytes;
};

TEST_P(RegionsTest, BlockSizesShareOneBudget) {
    constexpr uint64_t kRegionBytes = 16 * kMiB;
    constexpr uint64_t kBlockSizes[] = {4 * kKiB, 8 * kKiB, 64 * kKiB, 256 * kKiB, kMiB, 4 * kMiB};
    FarPool pool(setup(4 * kMiB), kFramesMin + 1, kMiB, 4);
    std::vector<SizedRegion> regions;
    for (const uint64_t block_bytes : kBlockSizes) {
        regions.push_back({pool.alloc_words(kRegionBytes, block_bytes), block_bytes});
        EXPECT_EQ(reinterpret_cast<uintptr_t>(regions.back().words) % block_bytes, 0u);
    }
    for (uint64_t round = 1; round <= 2; ++round) {
        for (const SizedRegion& region : regions) {
            const uint64_t tag = region.block_bytes;
            EXPECT_EQ(round == 1 ? non_zeros(region.words, kRegionBytes)
                                 : mismatches(region.words, kRegionBytes, tag + 1),
                      0u)
                << tag;
            fill(region.words, kRegionBytes, tag + round);
            const hanare_counters stats = pool.stats();
            ASSERT_LE(stats.resident_bytes + stats.metadata_bytes, stats.budget_bytes) << tag;
        }
    }
    for (const SizedRegion& region : regions) {
        EXPECT_EQ(mismatches(region.words, kRegionBytes, region.block_bytes + 2), 0u)
            << region.block_bytes;
    }
}

// A whole block size away from what is mapped, and there again once it is free.
TEST_P(RegionsTest, AtAWantedAddress) {
    constexpr uint64_t kBytes = 8 * kMiB;
    FarPool pool(setup(4 * kMiB), kFramesMin + 1, 256 * kKiB);
    std::byte* const place = pool.alloc(kBytes, 256 * kKiB);
    must(hanare_free(pool.get(), place));
    for (int round = 0; round < 2; ++round) {
        const hanare_alloc_options options = {sizeof options, 256 * kKiB, place};
        void* address = nullptr;
        must(hanare_alloc(pool.get(), kBytes, &options, &address));
        ASSERT_EQ(address, place);
        auto* const words = static_cast<uint64_t*>(address);
        EXPECT_EQ(non_zeros(words, kBytes), 0u);
        fill(words, kBytes, 7);
        EXPECT_EQ(mismatches(words, kBytes, 7), 0u);
        must(hanare_free(pool.get(), address));
    }
}

// Small pieces of one region and another in turn: frames of one size are given up for the other.
TEST_P(RegionsTest, SmallAndLargeBlocksAlternate) {
    constexpr uint64_t kLarge = kMiB;
    constexpr uint64_t kSmall = 4 * kKiB;
    constexpr uint64_t kLargeCount = 24;
    constexpr uint64_t kSmallCount = 4096;
    FarPool pool(setup(kLarge), kFramesMin + 1, kMiB);
    std::byte* const large = pool.alloc(kLargeCount * kLarge, kLarge);
    std::byte* const small = pool.alloc(kSmallCount * kSmall, kSmall);
    for (uint64_t i = 0; i < kSmallCount; ++i) {
        poke(small, kSmall, i, pattern(1, i));
        if (i % 64 != 0) continue;
        const uint64_t step = i / 64;
        poke(large, kLarge, step % kLargeCount, pattern(2, step));
        ASSERT_EQ(touch(small, kSmall, i / 2), pattern(1, i / 2)) << i;
    }
    for (uint64_t i = 0; i < kSmallCount; ++i) ASSERT_EQ(touch(small, kSmall, i), pattern(1, i));
    constexpr uint64_t kSteps = kSmallCount / 64;
    for (uint64_t step = kSteps - kLargeCount; step < kSteps; ++step) {
        EXPECT_EQ(touch(large, kLarge, step % kLargeCount), pattern(2, step));
    }
}

TEST_P(RegionsTest, PoolCountsAreTheSumOfItsRegions) {
    constexpr uint64_t kBlock = 64 * kKiB;
    constexpr uint64_t kBytes = 10 * kBlock;
    FarPool pool(setup(), 64, 4 * kBytes);
    std::byte* const a = pool.alloc(kBytes);
    std::byte* const b = pool.alloc(kBytes);
    for (uint64_t i = 0; i < 10; ++i) poke(a, kBlock, i, i);
    for (uint64_t i = 0; i < 4; ++i) touch(b, kBlock, i);
    const hanare_counters of_a = pool.stats(a + kBytes - 1);
    const hanare_counters of_b = pool.stats(b);
    EXPECT_EQ(of_a.write_faults, 10u);
    EXPECT_EQ(of_a.read_faults, 0u);
    EXPECT_EQ(of_a.dirty_bytes, kBytes);
    EXPECT_EQ(of_b.read_faults, 4u);
    EXPECT_EQ(of_b.resident_bytes, 4 * kBlock);
    must(hanare_free(pool.get(), a));
    const hanare_counters all = pool.stats();
    EXPECT_EQ(all.write_faults, 10u);
    EXPECT_EQ(all.zero_fills, 14u);
    EXPECT_EQ(all.resident_bytes, 4 * kBlock);
    EXPECT_EQ(all.virtual_bytes, kBytes);
}

TEST_P(RegionsTest, OddSizesWorkToTheLastByte) {
    FarPool pool(setup(), 32, kMiB);
    for (const uint64_t bytes : {uint64_t{1}, uint64_t{5000}, 64 * kKiB + 1, 200 * kKiB - 3}) {
        std::byte* const region = pool.alloc(bytes);
        region[bytes - 1] = std::byte{42};
        pool.make_absent(region, bytes);
        EXPECT_EQ(region[bytes - 1], std::byte{42});
        EXPECT_EQ(pool.stats(region).virtual_bytes, round_up(bytes, 64 * kKiB));
        must(hanare_free(pool.get(), region));
    }
}

TEST_P(RegionsTest, PoolsOfOneProcessDoNotMix) {
    constexpr uint64_t kBytes = 8 * kMiB;
    FarPool one(setup(4 * kKiB), 64, kBytes);
    FarPool other({other_engine(GetParam()), 64 * kKiB}, kFramesMin, kBytes);
    uint64_t* const a = one.alloc_words(kBytes);
    uint64_t* const b = other.alloc_words(kBytes);
    for (uint64_t i = 0; i < kBytes / sizeof(uint64_t); i += 256) {
        a[i] = pattern(1, i);
        b[i] = pattern(2, i);
    }
    for (uint64_t i = 0; i < kBytes / sizeof(uint64_t); i += 256) {
        ASSERT_EQ(a[i], pattern(1, i));
        ASSERT_EQ(b[i], pattern(2, i));
    }
    EXPECT_TRUE(fails_with(HANARE_STATUS_NOT_FOUND, {"not the start of a region of this pool"},
                           hanare_free(one.get(), b)));
    EXPECT_TRUE(fails_with(HANARE_STATUS_INVALID_ARGUMENT, {"not inside one region of this pool"},
                           hanare_pin(other.get(), a, 1, HANARE_ACCESS_READ)));
}

}  // namespace

}  // namespace hanare::api_test
