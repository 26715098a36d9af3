// SPDX-License-Identifier: Apache-2.0
//
// Every thread may touch far memory: tiny stacks, blocked signals, and more threads than frames.
#include <atomic>
#include <climits>
#include <csetjmp>
#include <csignal>
#include <functional>
#include <pthread.h>
#include <vector>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"
#include "sys/test_memory.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 16 * kKiB;
constexpr uint64_t kBlocks = 64;
constexpr uint64_t kBytes = kBlocks * kBlock;

class ThreadsTest : public EngineTest {};
API_TEST_WITH_ENGINES(ThreadsTest);

bool counts_up_all_blocks(std::byte* region) {
    for (uint64_t i = 0; i < kBlocks; ++i) poke(region, kBlock, i, touch(region, kBlock, i) + 1);
    return true;
}

bool all_blocks_are(const std::byte* region, uint64_t value) {
    for (uint64_t i = 0; i < kBlocks; ++i) {
        if (touch(region, kBlock, i) != value) return false;
    }
    return true;
}

void block_all_signals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

TEST_P(ThreadsTest, SmallestStacks) {
    FarPool pool(setup(kBlock), kFramesMin, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, static_cast<size_t>(PTHREAD_STACK_MIN)), 0);
    const auto body = [](void* memory) -> void* {
        counts_up_all_blocks(static_cast<std::byte*>(memory));
        return nullptr;
    };
    for (int i = 0; i < 8; ++i) {
        pthread_t thread;
        ASSERT_EQ(pthread_create(&thread, &attributes, body, region), 0);
        pthread_join(thread, nullptr);
    }
    pthread_attr_destroy(&attributes);
    EXPECT_TRUE(all_blocks_are(region, 8));
}

TEST_P(ThreadsTest, ThreadsThatBlockEverySignal) {
    FarPool pool(setup(kBlock), kFramesMin, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    run_threads({[&] {
        block_all_signals();
        counts_up_all_blocks(region);
        run_threads({[&] { counts_up_all_blocks(region); }});  // inherits the mask
    }});
    EXPECT_TRUE(all_blocks_are(region, 2));
}

API_TEST_SCENARIO(block_signals_before_open) {
    block_all_signals();
    FarPool pool({arguments[0].c_str(), kBlock}, kFramesMin, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    counts_up_all_blocks(region);
    run_threads({[&] { counts_up_all_blocks(region); }});
    SCENARIO_CHECK(all_blocks_are(region, 2));
    return 0;
}

TEST_P(ThreadsTest, SignalsBlockedBeforeThePoolIsOpened) {
    const Outcome outcome = run_scenario("block_signals_before_open", {GetParam()});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

TEST_P(ThreadsTest, SixtyFourThreadsOnSixteenFrames) {
    constexpr uint64_t kThreads = 64;
    constexpr uint64_t kRounds = 4;
    FarPool pool(setup(kBlock), kFramesMin, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    std::vector<std::function<void()>> bodies;
    for (uint64_t thread = 0; thread < kThreads; ++thread) {
        bodies.push_back([&, thread] {
            auto* const words = reinterpret_cast<uint64_t*>(region);
            for (uint64_t i = 0; i < kRounds * kBlocks; ++i) {
                uint64_t* const block = words + (i + thread) % kBlocks * kBlock / sizeof(uint64_t);
                std::atomic_ref(block[0]).fetch_add(1, std::memory_order_relaxed);
                block[1 + thread] += 1;  // a word of its own
            }
        });
    }
    run_threads(bodies);
    EXPECT_TRUE(all_blocks_are(region, kThreads * kRounds));
    for (uint64_t block = 0; block < kBlocks; ++block) {
        for (uint64_t thread = 0; thread < kThreads; ++thread) {
            const auto* const words = reinterpret_cast<uint64_t*>(region + block * kBlock);
            ASSERT_EQ(words[1 + thread], kRounds) << block << " " << thread;
        }
    }
    EXPECT_GT(pool.stats().write_backs, 0u);
}

// A program with its own SIGBUS handler, which it installs before or after the pool.
sigjmp_buf resume;
volatile std::sig_atomic_t handler_calls = 0;
void* volatile handled_address = nullptr;

void on_sigbus(int, siginfo_t* info, void*) {
    handler_calls = handler_calls + 1;
    handled_address = info->si_addr;
    siglongjmp(resume, 1);
}

void install_handler() {
    struct sigaction action = {};
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, nullptr);
}

void touch_foreign(const sys::testing::FaultingPage& page) {
    if (sigsetjmp(resume, 1) == 0) page.touch();
}

API_TEST_SCENARIO(own_sigbus_handler) {
    const bool before = arguments[1] == "before";
    if (before) install_handler();
    FarPool pool({arguments[0].c_str(), kBlock}, kFramesMin, kBytes);
    if (!before) install_handler();
    std::byte* const region = pool.alloc(kBytes);
    counts_up_all_blocks(region);
    SCENARIO_CHECK(handler_calls == 0);
    const sys::testing::FaultingPage foreign;
    for (int round = 1; round <= 3; ++round) {
        touch_foreign(foreign);
        SCENARIO_CHECK(handler_calls == round);
        SCENARIO_CHECK(foreign.contains(handled_address));
        counts_up_all_blocks(region);
        SCENARIO_CHECK(handler_calls == round);
    }
    SCENARIO_CHECK(all_blocks_are(region, 4));
    return 0;
}

TEST_P(ThreadsTest, OwnSigbusHandlerInstalledBefore) {
    const Outcome outcome = run_scenario("own_sigbus_handler", {GetParam(), "before"});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    EXPECT_EQ(outcome.errors, "");
}

TEST_P(ThreadsTest, OwnSigbusHandlerInstalledAfter) {
    const Outcome outcome = run_scenario("own_sigbus_handler", {GetParam(), "after"});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    EXPECT_EQ(outcome.errors, "");
}

API_TEST_SCENARIO(foreign_fault_without_handler) {
    std::signal(SIGBUS, SIG_DFL);
    FarPool pool({arguments[0].c_str(), kBlock}, kFramesMin, kBytes);
    counts_up_all_blocks(pool.alloc(kBytes));
    const sys::testing::FaultingPage foreign;
    foreign.touch();
    return 0;
}

TEST_P(ThreadsTest, ForeignFaultsKillAsTheyAlwaysDid) {
    const Outcome outcome = run_scenario("foreign_fault_without_handler", {GetParam()});
    EXPECT_TRUE(outcome.died_of(SIGBUS)) << outcome.describe();
    EXPECT_EQ(outcome.errors, "");
}

}  // namespace

}  // namespace hanare::api_test
