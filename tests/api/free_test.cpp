// SPDX-License-Identifier: Apache-2.0
//
// Freeing a region that another thread still uses: a mistake of the program, which must end it and
// never give it other data.
#include <atomic>
#include <csignal>
#include <set>
#include <string>
#include <sys/mman.h>
#include <thread>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 16 * kKiB;
constexpr uint64_t kBlocks = 64;
constexpr uint64_t kBytes = kBlocks * kBlock;

API_TEST_SCENARIO(free_while_used) {
    FarPool pool({arguments[0].c_str(), kBlock}, kFramesMin, 2 * kBytes, 4);
    std::byte* const region = pool.alloc(kBytes);
    std::byte* const other = pool.alloc(kBytes);
    for (uint64_t i = 0; i < kBlocks; ++i) {
        poke(region, kBlock, i, pattern(1, i));
        poke(other, kBlock, i, pattern(2, i));
    }
    std::atomic<uint64_t> passes{0};
    const auto use = [&](uint64_t start) {
        for (uint64_t i = start;; ++i) {
            // _exit: the process is about to die under us.
            if (touch(region, kBlock, i * 5 % kBlocks) != pattern(1, i * 5 % kBlocks)) _exit(3);
            if (i % kBlocks == 0) ++passes;
        }
    };
    std::thread a(use, 0);
    std::thread b(use, 1);
    while (passes < 4) sched_yield();
    must(hanare_free(pool.get(), region));
    for (uint64_t i = 0;; ++i) touch(other, kBlock, i % kBlocks);
}

class FreeTest : public EngineTest {};
API_TEST_WITH_ENGINES(FreeTest);

TEST_P(FreeTest, FreeingWhatAnotherThreadUsesEndsTheProcess) {
    for (int attempt = 0; attempt < 8; ++attempt) {
        const Outcome outcome = run_scenario("free_while_used", {GetParam()});
        EXPECT_TRUE(outcome.died_of(SIGBUS) || outcome.died_of(SIGSEGV)) << outcome.describe();
        // With engine thread a waiting thread may be told what a handler thread has told already.
        const auto lines = outcome.lines();
        EXPECT_LE((std::set<std::string>(lines.begin(), lines.end()).size()), 2u) << outcome.errors;
    }
}

API_TEST_SCENARIO(page_taken_away) {
    FarPool pool({arguments[0].c_str(), kBlock}, kFramesMin, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    poke(region, kBlock, 3, 1);
    SCENARIO_CHECK(madvise(region + 3 * kBlock, kBlock, MADV_DONTNEED) == 0);
    touch(region, kBlock, 3);
    return 0;
}

TEST_P(FreeTest, ThePagesAreNotTheProgramsToGive) {
    if (std::string(GetParam()) == "segv-remap") GTEST_SKIP() << "cannot notice it";
    if (std::string(GetParam()) == "shared") GTEST_SKIP() << "maps them again: SharedEngineTest";
    const Outcome outcome = run_scenario("page_taken_away", {GetParam()});
    EXPECT_TRUE(outcome.died_of(SIGBUS)) << outcome.describe();
    ASSERT_EQ(outcome.lines().size(), 1u) << outcome.errors;
    EXPECT_NE(outcome.errors.find("is gone although its block is mapped"), std::string::npos);
}

API_TEST_SCENARIO(use_after_free) {
    FarPool pool({arguments[0].c_str(), kBlock}, kFramesMin, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    poke(region, kBlock, 0, 1);
    must(hanare_free(pool.get(), region));
    touch(region, kBlock, 0);
    return 0;
}

TEST_P(FreeTest, UseAfterFreeIsASegmentationFault) {
    const Outcome outcome = run_scenario("use_after_free", {GetParam()});
    EXPECT_TRUE(outcome.died_of(SIGSEGV)) << outcome.describe();
}

API_TEST_SCENARIO(use_after_close) {
    std::byte* region = nullptr;
    {
        FarPool pool({arguments[0].c_str(), kBlock}, kFramesMin, kBytes);
        region = pool.alloc(kBytes);
        poke(region, kBlock, 0, 1);
    }
    touch(region, kBlock, 0);
    return 0;
}

TEST_P(FreeTest, UseAfterCloseIsASegmentationFault) {
    const Outcome outcome = run_scenario("use_after_close", {GetParam()});
    EXPECT_TRUE(outcome.died_of(SIGSEGV)) << outcome.describe();
}

}  // namespace

}  // namespace hanare::api_test
