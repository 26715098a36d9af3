// SPDX-License-Identifier: Apache-2.0
//
// Stores that stop working, by injected errors: one line and SIGBUS where a fault needs them, no
// data lost, and everything goes on once they work again.
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

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

int unnamed_file() {
    const sys::testing::TemporaryDirectory directory;
    return open(directory.path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

// Whole blocks, or parts of them.
API_TEST_SCENARIO(store_reads_fail_in_a_system_call) {
    const bool in_parts = arguments[0] == "parts";
    const uint64_t block = in_parts ? 256 * kKiB : kBlock;
    FarPool pool({"thread", block}, 20, 64 * block);
    std::byte* const region = pool.alloc(64 * block);
    poke(region, block, 3, 1);
    poke(region, block, 4, 2);
    if (in_parts) must(hanare_advise(pool.get(), region, 64 * block, HANARE_ADVICE_RANDOM));
    const int file = unnamed_file();
    SCENARIO_CHECK(file >= 0);
    // A handler thread that is late with an event of before brings its block once more, and then
    // nothing is read.
    SCENARIO_CHECK(eventually([&] {
        pool.make_absent(region, 64 * block);
        if (in_parts) touch(region + block / 2, block, 3);  // sparse already
        inject::arm(inject::Call::kRead, EIO);
        const bool refused = write(file, region + 3 * block, 8) == -1 && errno == EFAULT;
        inject::disarm_all();
        return refused;
    }));
    // Refused for a while, then tried again.
    SCENARIO_CHECK(eventually([&] { return write(file, region + 3 * block, 8) == 8; }));
    SCENARIO_CHECK(touch(region, block, 3) == 1 && touch(region, block, 4) == 2);
    SCENARIO_CHECK(touch(region + block / 2, block, 3) == 0);
    return 0;
}

class ThreadEngineStoreTest : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        if (const auto refusal = engine_refusal("thread"); !refusal.empty()) {
            GTEST_SKIP() << refusal;
        }
    }
};
INSTANTIATE_TEST_SUITE_P(, ThreadEngineStoreTest, testing::Values("parts", "blocks"),
                         engine_test_name);

TEST_P(ThreadEngineStoreTest, ASystemCallOnADeadStoreFailsWithOneLine) {
    Outcome outcome;
    // Where the thread was seen running when it was refused, and an event of before has brought the
    // block since, nobody can say whether its system call has failed.
    for (int runs = 0; runs < 5 && outcome.lines().empty(); ++runs) {
        outcome = run_scenario("store_reads_fail_in_a_system_call", {GetParam()});
        EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    }
    ASSERT_EQ(outcome.lines().size(), 1u) << outcome.errors;
    EXPECT_NE(outcome.errors.find("the store failed, errno 5; the system call fails"),
              std::string::npos)
        << outcome.errors;
}

// The kernel holds the pipe while it waits for what is to be written.
API_TEST_SCENARIO(store_reads_fail_while_standard_error_is_held) {
    FarPool pool({"thread", kBlock}, kFrames, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    for (uint64_t i = 0; i < 32; ++i) poke(region, kBlock, i, 1);
    pool.make_absent(region, kBytes);
    int ends[2];
    SCENARIO_CHECK(pipe2(ends, O_CLOEXEC) == 0);
    const int before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    SCENARIO_CHECK(before >= 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    inject::arm(inject::Call::kRead, EIO);
    std::atomic<uint64_t> failed{0};
    std::vector<std::function<void()>> bodies;
    for (uint64_t i = 0; i < 32; ++i) {
        bodies.emplace_back([&, i] {
            failed += write(STDERR_FILENO, region + i * kBlock, 8) == -1 && errno == EFAULT;
        });
    }
    run_threads(bodies);
    inject::disarm_all();
    char line[100] = {};
    const ssize_t got = read(ends[0], line, sizeof line - 1);
    dup2(before, STDERR_FILENO);
    SCENARIO_CHECK(failed == 32 && got > 0);
    SCENARIO_CHECK(std::string_view(line).starts_with("hanare: cannot serve a read"));
    return 0;
}

TEST(ThreadEngineTellTest, NobodyWaitsForStandardError) {
    if (const auto refusal = engine_refusal("thread"); !refusal.empty()) GTEST_SKIP() << refusal;
    const Outcome outcome = run_scenario("store_reads_fail_while_standard_error_is_held");
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

// Kernels before 6.8 cannot move pages; before 6.6 they cannot poison, and what takes the page's
// place stays there.
API_TEST_SCENARIO(store_is_dead_on_an_old_kernel) {
    std::signal(SIGBUS, on_sigbus);
    inject::arm(inject::Call::kMove, EINVAL);
    inject::arm(inject::Call::kPoison, EINVAL);
    FarPool pool({"thread", kBlock}, kFrames, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    SCENARIO_CHECK(blocks_written(region, kBlocks, 1) == kBlocks);
    pool.make_absent(region, kBytes);
    inject::arm(inject::Call::kRead, EIO);
    SCENARIO_CHECK(blocks_written(region, 200, 1) == 0);
    inject::disarm_all();
    inject::arm(inject::Call::kPoison, EINVAL);
    const int file = unnamed_file();
    for (uint64_t i = 1; i < kBlocks; ++i) {
        SCENARIO_CHECK(write(file, region + i * kBlock, 8) == 8);
        SCENARIO_CHECK(touch(region, kBlock, i) == pattern(1, i));
    }
    return 0;
}

TEST(ThreadEngineOldKernelTest, ServesAndRefusesAllTheSame) {
    if (const auto refusal = engine_refusal("thread"); !refusal.empty()) GTEST_SKIP() << refusal;
    const Outcome outcome = run_scenario("store_is_dead_on_an_old_kernel");
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
    if (!serves_parts(GetParam())) GTEST_SKIP() << "it does not divide blocks";
    const Outcome outcome = run_scenario("store_fails_for_parts", {GetParam()});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    EXPECT_EQ(outcome.lines().size(), 1u) << outcome.errors;
}

TEST_P(StoreErrorTest, WhatCannotBeReadAheadIsReadWhenItIsNeeded) {
    FarPool pool(setup(kBlock), kFrames, kBytes, 16);
    uint64_t* const words = pool.alloc_words(kBytes);
    fill(words, kBytes, 1);
    pool.make_absent(words, kBytes);
    ASSERT_EQ(mismatches(words, 8 * kBlock, 1), 0u);
    const auto before = pool.stats(words);
    inject::arm(inject::Call::kRead, EIO, 2, 1);
    EXPECT_EQ(mismatches(words, kBytes, 1), 0u);
    inject::disarm_all();
    const auto after = pool.stats(words);
    EXPECT_GT(after.prefetch_reads, before.prefetch_reads);
    EXPECT_EQ(after.store_errors, before.store_errors + 1);
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
