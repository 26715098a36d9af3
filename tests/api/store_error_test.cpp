// SPDX-License-Identifier: Apache-2.0
//
// Stores that stop working, by injected errors: one line and SIGBUS where a fault needs them, no
// data lost, and everything goes on once they work again.
#include <cerrno>
#include <csetjmp>
#include <csignal>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"
#include "sys/inject.hpp"

namespace hanare::api_test {

namespace {

namespace inject = sys::inject;

constexpr uint64_t kBlock = 4 * kKiB;
constexpr uint64_t kFrames = 320;
constexpr uint64_t kBlocks = 640;
constexpr uint64_t kBytes = kBlocks * kBlock;

class StoreErrorTest : public EngineTest {};
API_TEST_WITH_ENGINES(StoreErrorTest);

API_TEST_SCENARIO(store_is_dead) {
    std::signal(SIGBUS, SIG_DFL);
    FarPool pool({arguments[0].c_str(), kBlock}, kFrames, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    poke(region, kBlock, 3, 1);
    pool.make_absent(region, kBytes);
    inject::arm(inject::Call::kRead, EIO);
    SCENARIO_CHECK(touch(region, kBlock, 3) == 0);  // dies here
    return 0;
}

TEST_P(StoreErrorTest, AFaultOnADeadStoreEndsInOneLine) {
    const Outcome outcome = run_scenario("store_is_dead", {GetParam()});
    EXPECT_TRUE(outcome.died_of(SIGBUS)) << outcome.describe();
    ASSERT_EQ(outcome.lines().size(), 1u) << outcome.errors;
    EXPECT_NE(outcome.errors.find("(block 3): the store failed, errno 5; SIGBUS follows"),
              std::string::npos)
        << outcome.errors;
}

sigjmp_buf resume;
void on_sigbus(int) { siglongjmp(resume, 1); }

// Touches block after block; returns how many could be.
uint64_t blocks_written(std::byte* region, uint64_t blocks, uint64_t tag) {
    static volatile uint64_t done;
    done = 0;
    if (sigsetjmp(resume, 1) != 0) return done;
    while (done < blocks) {
        poke(region, kBlock, done, pattern(tag, done));
        done = done + 1;
    }
    return done;
}

uint64_t wrong_blocks(const std::byte* region, uint64_t blocks, uint64_t tag) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < blocks; ++i) count += touch(region, kBlock, i) != pattern(tag, i);
    return count;
}

API_TEST_SCENARIO(store_reads_fail_for_a_while) {
    std::signal(SIGBUS, on_sigbus);
    FarPool pool({arguments[0].c_str(), kBlock}, kFrames, kBytes, 8);
    std::byte* const region = pool.alloc(kBytes);
    SCENARIO_CHECK(blocks_written(region, 200, 1) == 200);
    pool.make_absent(region, kBytes);
    inject::arm(inject::Call::kRead, EIO);
    must(hanare_prefetch(pool.get(), region, 32 * kBlock));  // only advice
    SCENARIO_CHECK(blocks_written(region, 200, 1) == 0);
    SCENARIO_CHECK(fails_with(HANARE_STATUS_STORE_IO, {"failed to read or write"},
                              hanare_pin(pool.get(), region, kBlock, HANARE_ACCESS_READ)));
    inject::disarm_all();
    SCENARIO_CHECK(wrong_blocks(region, 200, 1) == 0);
    SCENARIO_CHECK(pool.stats().store_errors > 0);
    return 0;
}

TEST_P(StoreErrorTest, AStoreThatReadsAgainHasEverything) {
    const Outcome outcome = run_scenario("store_reads_fail_for_a_while", {GetParam()});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    EXPECT_EQ(outcome.lines().size(), 1u) << outcome.errors;
}

API_TEST_SCENARIO(store_is_full_for_a_while) {
    std::signal(SIGBUS, on_sigbus);
    FarPool pool({arguments[0].c_str(), kBlock}, kFrames, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    inject::arm(inject::Call::kWrite, ENOSPC);
    const uint64_t done = blocks_written(region, kBlocks, 1);
    SCENARIO_CHECK(done >= kFrames - kFramesMin && done < kBlocks);
    SCENARIO_CHECK(fails_with(HANARE_STATUS_STORE_FULL, {"cannot write blocks back"},
                              hanare_flush(pool.get(), nullptr, 0)));
    SCENARIO_CHECK(wrong_blocks(region, done, 1) == 0);  // all still here
    SCENARIO_CHECK(pool.stats().dirty_bytes == done * kBlock);
    inject::disarm_all();
    SCENARIO_CHECK(blocks_written(region, kBlocks, 1) == kBlocks);
    must(hanare_flush(pool.get(), nullptr, 0));
    SCENARIO_CHECK(pool.stats().dirty_bytes == 0);
    pool.make_absent(region, kBytes);
    SCENARIO_CHECK(wrong_blocks(region, kBlocks, 1) == 0);
    return 0;
}

TEST_P(StoreErrorTest, AFullStoreLosesNothing) {
    const Outcome outcome = run_scenario("store_is_full_for_a_while", {GetParam()});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    ASSERT_EQ(outcome.lines().size(), 1u) << outcome.errors;
    EXPECT_NE(outcome.errors.find("the store has no room left; SIGBUS follows"), std::string::npos);
}

// Two hundred dirty blocks, a hundred clean ones: the clean ones can go.
API_TEST_SCENARIO(store_is_full_with_clean_blocks) {
    std::signal(SIGBUS, on_sigbus);
    const bool dirty_first = arguments[1] == "dirty-first";
    FarPool pool({arguments[0].c_str(), kBlock}, kFrames, 3 * kBytes);
    std::byte* const clean = pool.alloc(kBytes);
    std::byte* const dirty = pool.alloc(kBytes);
    std::byte* const more = pool.alloc(kBytes);
    SCENARIO_CHECK(blocks_written(clean, 100, 1) == 100);
    pool.make_absent(clean, kBytes);
    if (!dirty_first) SCENARIO_CHECK(wrong_blocks(clean, 100, 1) == 0);
    SCENARIO_CHECK(blocks_written(dirty, 200, 2) == 200);
    if (dirty_first) SCENARIO_CHECK(wrong_blocks(clean, 100, 1) == 0);
    inject::arm(inject::Call::kWrite, ENOSPC);
    SCENARIO_CHECK(blocks_written(more, 90, 3) == 90);
    SCENARIO_CHECK(wrong_blocks(more, 90, 3) == 0);
    SCENARIO_CHECK(wrong_blocks(dirty, 200, 2) == 0);
    inject::disarm_all();
    SCENARIO_CHECK(wrong_blocks(clean, 100, 1) == 0);
    must(hanare_flush(pool.get(), nullptr, 0));
    return 0;
}

TEST_P(StoreErrorTest, AFullStoreDoesNotMatterWhileBlocksAreClean) {
    for (const char* order : {"clean-first", "dirty-first"}) {
        const Outcome outcome =
            run_scenario("store_is_full_with_clean_blocks", {GetParam(), order});
        EXPECT_TRUE(outcome.exited_with(0)) << order << ": " << outcome.describe();
        EXPECT_EQ(outcome.errors, "") << order;
    }
}

// Parts of blocks: what cannot be written stays, what cannot be read is not invented.
API_TEST_SCENARIO(store_fails_for_parts) {
    std::signal(SIGBUS, on_sigbus);
    constexpr uint64_t kBig = 256 * kKiB;
    constexpr uint64_t kBigBytes = 64 * kBig;
    FarPool pool({arguments[0].c_str(), kBig}, 20, kBigBytes, 8);
    std::byte* const region = pool.alloc(kBigBytes);
    auto* const words = reinterpret_cast<uint64_t*>(region);
    fill(words, kBigBytes, 1);
    pool.make_absent(region, kBigBytes);
    must(hanare_advise(pool.get(), region, kBigBytes, HANARE_ADVICE_RANDOM));
    for (uint64_t i = 0; i < 64; ++i) poke(region, kBig, i, i);
    inject::arm(inject::Call::kWrite, ENOSPC);
    SCENARIO_CHECK(fails_with(HANARE_STATUS_STORE_FULL, {"cannot write blocks back"},
                              hanare_flush(pool.get(), nullptr, 0)));
    SCENARIO_CHECK(pool.stats().dirty_bytes == 64 * 4 * kKiB);
    for (uint64_t i = 0; i < 64; ++i) SCENARIO_CHECK(touch(region, kBig, i) == i);
    inject::arm(inject::Call::kRead, EIO);
    if (sigsetjmp(resume, 1) == 0) {
        SCENARIO_CHECK(touch(region + 64 * kKiB, kBig, 5) == 0);  // leaves
    }
    must(hanare_prefetch(pool.get(), region, kBigBytes));  // only advice
    inject::disarm_all();
    for (uint64_t i = 0; i < 64; ++i) poke(region, kBig, i, pattern(1, i * kBig / 8));
    SCENARIO_CHECK(mismatches(words, kBigBytes, 1) == 0);
    must(hanare_flush(pool.get(), nullptr, 0));
    pool.make_absent(region, kBigBytes);
    SCENARIO_CHECK(mismatches(words, kBigBytes, 1) == 0);
    return 0;
}

TEST_P(StoreErrorTest, PartsOfBlocksAreKeptWhenTheStoreFails) {
    if (GetParam() == std::string("segv-remap")) GTEST_SKIP() << "it does not divide blocks";
    const Outcome outcome = run_scenario("store_fails_for_parts", {GetParam()});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    EXPECT_EQ(outcome.lines().size(), 1u) << outcome.errors;
}

TEST_P(StoreErrorTest, ShortTransfersAreContinued) {
    FarPool pool(setup(64 * kKiB), 32, 80 * 64 * kKiB, 8);
    uint64_t* const words = pool.alloc_words(80 * 64 * kKiB);
    inject::arm(inject::Call::kRead, 0, 0, 100);
    inject::arm(inject::Call::kWrite, 0, 0, 100);
    fill(words, 80 * 64 * kKiB, 1);
    EXPECT_EQ(mismatches(words, 80 * 64 * kKiB, 1), 0u);
    inject::disarm_all();
    EXPECT_EQ(pool.stats().store_errors, 0u);
}

TEST_P(StoreErrorTest, WorksWithoutIoUring) {
    inject::arm(inject::Call::kUringSetup, EPERM);
    FarPool pool(setup(kBlock), kFrames, kBytes, 8);
    uint64_t* const words = pool.alloc_words(kBytes);
    fill(words, kBytes, 1);
    EXPECT_EQ(mismatches(words, kBytes, 1), 0u);
    inject::disarm_all();
}

}  // namespace

}  // namespace hanare::api_test
