// SPDX-License-Identifier: Apache-2.0
//
// Kernels that refuse what an engine asks for, by injected errors: no write is lost, and everything
// goes on.
#include <cerrno>

#include "api/far_pool.hpp"
#include "base/prng.hpp"
#include "sys/inject.hpp"

namespace hanare::api_test {

namespace {

namespace inject = sys::inject;

constexpr uint64_t kBlock = 16 * kKiB;
constexpr uint64_t kBlocks = 100;
constexpr uint64_t kBytes = kBlocks * kBlock;

// The kernel has no mapping or no memory left now and then.
TEST(EngineErrorTest, SegvRemapLosesNothing) {
    if (const auto refusal = engine_refusal("segv-remap"); !refusal.empty()) {
        GTEST_SKIP() << refusal;
    }
    FarPool pool({"segv-remap", kBlock}, kFramesMin + 8, kBytes, 4);
    std::byte* const region = pool.alloc(kBytes);
    std::vector<uint64_t> shadow(kBlocks, 0);
    Prng random(sys::testing::test_seed());
    uint64_t wrong = 0;
    for (int step = 0; step < 6000; ++step) {
        const inject::Call call =
            random.below(2) == 0 ? inject::Call::kRemap : inject::Call::kProtect;
        inject::arm(call, ENOMEM, random.below(4), 1 + random.below(3));
        const uint64_t i = random.below(kBlocks);
        wrong += touch(region, kBlock, i) != shadow[i];
        if (random.below(2) == 0) poke(region, kBlock, i, shadow[i] = random.next());
        if (random.below(50) != 0) continue;
        inject::disarm_all();
        must(hanare_flush(pool.get(), region + i * kBlock, kBlock));
    }
    inject::disarm_all();
    for (uint64_t i = 0; i < kBlocks; ++i) wrong += touch(region, kBlock, i) != shadow[i];
    EXPECT_EQ(wrong, 0u);
    EXPECT_GT(pool.stats().write_backs, 0u);
}

// The kernel has no memory left now and then, behind the first page of a block.  Blocks are
// discarded, so that zeros are mapped from frames that held something else.
class FillErrorTest : public EngineTest {};

TEST_P(FillErrorTest, NothingIsLost) {
    FarPool pool({GetParam(), kBlock}, kFramesMin + 8, kBytes, 4);
    uint64_t* const words = pool.alloc_words(kBytes);
    constexpr uint64_t kBlockWords = kBlock / sizeof(uint64_t);
    std::vector<uint64_t> shadow(kBytes / sizeof(uint64_t), 0);
    Prng random(sys::testing::test_seed());
    uint64_t wrong = 0;
    for (int step = 0; step < 6000; ++step) {
        inject::arm(inject::Call::kFill, ENOMEM, random.below(4), 1 + random.below(3));
        const uint64_t word = random.below(shadow.size());
        if (random.below(2) == 0) words[word] = shadow[word] = random.next();
        const uint64_t first = random.below(kBlocks) * kBlockWords;
        for (uint64_t i = first; i < first + kBlockWords; i += 61) wrong += words[i] != shadow[i];
        if (random.below(4) != 0) continue;
        inject::disarm_all();
        must(hanare_advise(pool.get(), words + first, kBlock, HANARE_ADVICE_DISCARD));
        std::fill_n(shadow.begin() + static_cast<ptrdiff_t>(first), kBlockWords, 0);
    }
    inject::disarm_all();
    for (uint64_t i = 0; i < shadow.size(); ++i) wrong += words[i] != shadow[i];
    EXPECT_EQ(wrong, 0u);
    EXPECT_GT(pool.stats().write_backs, 0u);
}
API_TEST_WITH_ENGINES(FillErrorTest);

// What was mapped for a moment may have been written to.
TEST(EngineErrorTest, ABlockThatIsMappedAtTheSecondTryIsDirty) {
    if (const auto refusal = engine_refusal("segv-remap"); !refusal.empty()) {
        GTEST_SKIP() << refusal;
    }
    FarPool pool({"segv-remap", kBlock}, kFramesMin + 8, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    touch(region, kBlock, 0);
    EXPECT_EQ(pool.stats(region).dirty_bytes, 0u);
    inject::arm(inject::Call::kRemap, ENOMEM, 0, 1);
    touch(region, kBlock, 1);
    inject::disarm_all();
    EXPECT_EQ(pool.stats(region).dirty_bytes, kBlock);
}

}  // namespace

}  // namespace hanare::api_test
