// SPDX-License-Identifier: Apache-2.0
//
// Single instructions and calls that need several absent blocks at once.
#include <cstring>
#include <immintrin.h>

#include "api/far_pool.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 4 * kKiB;
constexpr uint64_t kBlocks = 64;
constexpr uint64_t kBytes = kBlocks * kBlock;

class AccessTest : public EngineTest {
protected:
    void SetUp() override {
        EngineTest::SetUp();
        if (IsSkipped()) return;
        pool_ = std::make_unique<FarPool>(setup(kBlock), kFramesMin, kBytes);
        region_ = pool_->alloc(kBytes);
        fill(reinterpret_cast<uint64_t*>(region_), kBytes, 1);
        pool_->make_absent(region_, kBytes);
    }

    std::unique_ptr<FarPool> pool_;
    std::byte* region_ = nullptr;
};

API_TEST_WITH_ENGINES(AccessTest);

// Eight bytes anywhere, in one instruction.
struct [[gnu::packed]] Unaligned {
    volatile uint64_t value;
    uint64_t get() const { return value; }
};

TEST_P(AccessTest, UnalignedWordAcrossTwoAbsentBlocks) {
    for (uint64_t block = 1; block < kBlocks; ++block) {
        auto* const across = reinterpret_cast<Unaligned*>(region_ + block * kBlock - 3);
        across->value = pattern(2, block);
        pool_->make_absent(region_ + (block - 1) * kBlock, 2 * kBlock);
        ASSERT_EQ(across->get(), pattern(2, block));
    }
}

TEST_P(AccessTest, UnalignedWordAcrossAReadableAndAnAbsentBlock) {
    for (uint64_t block = 1; block < kBlocks; ++block) {
        auto* const across = reinterpret_cast<Unaligned*>(region_ + block * kBlock - 5);
        touch(region_, kBlock, block - 1);
        across->value = block;
        pool_->make_absent(region_ + (block - 1) * kBlock, kBlock);
        ASSERT_EQ(across->get(), block);
    }
}

TEST_P(AccessTest, CopyBetweenAbsentRegions) {
    for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, uint64_t{13}, kBlock - 7}) {
        std::byte* const target = pool_->alloc(kBytes);
        const uint64_t bytes = kBytes - offset;
        std::memcpy(target + offset, region_, bytes);
        pool_->make_absent(target, kBytes);
        pool_->make_absent(region_, kBytes);
        EXPECT_EQ(std::memcmp(target + offset, region_, bytes), 0);
        must(hanare_free(pool_->get(), target));
    }
    EXPECT_EQ(mismatches(reinterpret_cast<uint64_t*>(region_), kBytes, 1), 0u);
}

[[gnu::target("avx2")]] __m256i gather(const std::byte* region, __m256i byte_offsets) {
    return _mm256_i32gather_epi32(reinterpret_cast<const int*>(region), byte_offsets, 1);
}

// Eight elements, each across the border of two blocks: sixteen absent blocks in one instruction.
[[gnu::target("avx2")]] void gather_across_borders(std::byte* region, uint64_t first,
                                                   uint32_t found[8], uint32_t expected[8]) {
    alignas(32) int32_t offsets[8];
    for (uint64_t i = 0; i < 8; ++i) {
        offsets[i] = static_cast<int32_t>((first + 2 * i + 1) * kBlock - 2);
        std::memcpy(&expected[i], region + offsets[i], sizeof expected[i]);
    }
    const __m256i byte_offsets = _mm256_load_si256(reinterpret_cast<const __m256i*>(offsets));
    const __m256i values = gather(region, byte_offsets);
    std::memcpy(found, &values, sizeof values);
}

TEST_P(AccessTest, GatherFromSixteenAbsentBlocksWithSixteenFrames) {
    if (__builtin_cpu_supports("avx2") == 0) GTEST_SKIP() << "this CPU has no AVX2";
    for (uint64_t first = 0; first + 16 <= kBlocks; first += 5) {
        uint32_t expected[8];
        uint32_t found[8];
        gather_across_borders(region_, first, found, expected);
        pool_->make_absent(region_, kBytes);
        gather_across_borders(region_, first, found, expected);
        for (int i = 0; i < 8; ++i) ASSERT_EQ(found[i], expected[i]) << first << " " << i;
        pool_->make_absent(region_, kBytes);
    }
}

}  // namespace

}  // namespace hanare::api_test
