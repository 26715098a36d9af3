// SPDX-License-Identifier: Apache-2.0
//
// Pages of blocks that the kernel has swapped out.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"
#include "sys/swap_file.hpp"
#include "sys/test_support.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 64 * kKiB;
constexpr uint64_t kFrames = 24;
constexpr uint64_t kBytes = 3 * kFrames * kBlock;
constexpr uint64_t kReadBytes = kFrames / 2 * kBlock;

// Whether anything of the range was swapped out.
bool swap_out(void* memory, uint64_t bytes) {
    const auto before = sys::swap_traffic();
    madvise(memory, bytes, MADV_PAGEOUT);
    const auto after = sys::swap_traffic();
    return before && after && after->written_bytes > before->written_bytes;
}

// arguments: engine
API_TEST_SCENARIO(swapped_out) {
    auto guardian = sys::Guardian::start();
    SCENARIO_CHECK(guardian);
    const sys::testing::TemporaryDirectory directory;
    const auto swap = sys::SwapFile::create(directory.path(), 64 * kMiB, &*guardian);
    if (!swap) {
        std::fprintf(stderr, "%s\n", swap.error().text);
        return kScenarioSkipped;
    }
    FarPool pool({arguments[0].c_str(), kBlock}, kFrames, 2 * kBytes);
    uint64_t* const words = pool.alloc_words(kBytes);
    const uint64_t rest = kReadBytes / sizeof(uint64_t);  // the first word behind them
    fill(words, kBytes, 1);
    enum { kReadThem, kWriteToThem, kUseTheirFrames, kUseTheirFramesForZeros };
    for (const auto next : {kReadThem, kWriteToThem, kUseTheirFrames, kUseTheirFramesForZeros}) {
        pool.make_absent(words, kBytes);
        // Protected pages, as these are, take their protection to the swap file and back.
        SCENARIO_CHECK(mismatches(words, kReadBytes, 1) == 0);
        if (!swap_out(words, kReadBytes)) {
            std::fprintf(stderr, "the kernel swaps nothing out\n");
            return kScenarioSkipped;
        }
        if (next == kReadThem) SCENARIO_CHECK(mismatches(words, kReadBytes, 1) == 0);
        if (next == kWriteToThem) fill(words, kReadBytes, 1);
        if (next == kUseTheirFramesForZeros) {
            uint64_t* const fresh = pool.alloc_words(kBytes);
            SCENARIO_CHECK(non_zeros(fresh, kBytes) == 0);
            fill(fresh, kBytes, 2);
            SCENARIO_CHECK(mismatches(fresh, kBytes, 2) == 0);
        }
        for (uint64_t i = rest; i < kBytes / sizeof(uint64_t); ++i) {
            if (words[i] != pattern(1, i)) return 1;
        }
        SCENARIO_CHECK(mismatches(words, kBytes, 1) == 0);
        fill(words, kBytes, 1);
        SCENARIO_CHECK(mismatches(words, kBytes, 1) == 0);
    }
    return 0;
}

class SwapTest : public EngineTest {};
API_TEST_WITH_ENGINES(SwapTest);

TEST_P(SwapTest, PagesThatAreSwappedOutServeOnInOtherBlocks) {
    const Outcome outcome = run_scenario("swapped_out", {GetParam()});
    SKIP_IF_SCENARIO_WAS(outcome);
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

}  // namespace

}  // namespace hanare::api_test
