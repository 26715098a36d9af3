// SPDX-License-Identifier: Apache-2.0
//
// A signal handler of the program that uses far memory, and that interrupts library calls, faults
// and plain code alike.  It must neither wait for itself nor disturb anything.
#include <atomic>
#include <csignal>
#include <ctime>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"
#include "base/prng.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 8 * kKiB;
constexpr uint64_t kBlocks = 64;
constexpr uint64_t kBytes = kBlocks * kBlock;
constexpr long kPause_ns = 250'000;
constexpr uint64_t kSignals = 500;
constexpr uint64_t kTurns = 700;

// The handler's own half of the memory, and how often it ran.
std::byte* handler_region = nullptr;
std::atomic<uint64_t> handler_runs{0};

timer_t signal_timer = {};

void set_timer() {
    const itimerspec once = {{0, 0}, {0, kPause_ns}};
    timer_settime(signal_timer, 0, &once, nullptr);
}

// What it interrupts has time to go on before the next signal, however slow the machine is.
void on_signal(int) {
    const uint64_t run = handler_runs.load(std::memory_order_relaxed);
    const uint64_t block = run * 7 % kBlocks;
    poke(handler_region, kBlock, block, touch(handler_region, kBlock, block) + 1);
    handler_runs.store(run + 1, std::memory_order_relaxed);
    set_timer();
}

// Signals this process with `number` at a high rate, as long as it lives.
class SignalTimer {
public:
    explicit SignalTimer(int number) {
        struct sigaction action = {};
        action.sa_handler = on_signal;
        action.sa_flags = SA_RESTART;
        sigfillset(&action.sa_mask);
        sigaction(number, &action, nullptr);
        sigevent event = {};
        event.sigev_notify = SIGEV_SIGNAL;
        event.sigev_signo = number;
        timer_create(CLOCK_MONOTONIC, &event, &signal_timer);
        set_timer();
    }
    ~SignalTimer() { timer_delete(signal_timer); }
};

// One library call or access of each kind, chosen at random; counts `counts` up like the memory.
void take_turn(FarPool& pool, std::byte* region, Prng& random, std::vector<uint64_t>& counts) {
    const uint64_t block = random.below(kBlocks);
    std::byte* const address = region + block * kBlock;
    poke(region, kBlock, block, touch(region, kBlock, block) + 1);
    ++counts[block];
    switch (random.below(8)) {
        case 0: must(hanare_flush(pool.get(), nullptr, 0)); break;
        case 1: must(hanare_advise(pool.get(), address, kBlock, HANARE_ADVICE_DONTNEED)); break;
        case 2: must(hanare_prefetch(pool.get(), address, 1)); break;
        case 3:
            must(hanare_pin(pool.get(), address, kBlock, HANARE_ACCESS_WRITE));
            must(hanare_unpin(pool.get(), address, kBlock));
            break;
        case 4: pool.stats(); break;
        case 5: {
            std::byte* const other = pool.alloc(2 * kBlock);
            poke(other, kBlock, 1, 1);
            must(hanare_free(pool.get(), other));
            break;
        }
        default: break;
    }
}

API_TEST_SCENARIO(signals_everywhere) {
    FarPool pool({arguments[0].c_str(), kBlock}, kFramesMin + 8, 3 * kBytes, 4);
    std::byte* const region = pool.alloc(kBytes);
    handler_region = pool.alloc(kBytes);
    std::vector<uint64_t> counts(kBlocks, 0);
    {
        const SignalTimer timer(std::stoi(arguments[1]));
        Prng random(1);
        for (uint64_t turn = 0; turn < kTurns || handler_runs < kSignals; ++turn) {
            take_turn(pool, region, random, counts);
        }
    }
    for (uint64_t i = 0; i < kBlocks; ++i) SCENARIO_CHECK(touch(region, kBlock, i) == counts[i]);
    uint64_t sum = 0;
    uint64_t runs = 0;
    do {  // a signal may come late
        runs = handler_runs;
        sum = 0;
        for (uint64_t i = 0; i < kBlocks; ++i) sum += touch(handler_region, kBlock, i);
    } while (handler_runs != runs);
    SCENARIO_CHECK(sum == runs);
    const hanare_counters stats = pool.stats();
    SCENARIO_CHECK(stats.demand_reads > 0);
    SCENARIO_CHECK(stats.resident_bytes + stats.metadata_bytes <= stats.budget_bytes);
    return 0;
}

class SignalHandlerTest : public EngineTest {};
API_TEST_WITH_ENGINES(SignalHandlerTest);

TEST_P(SignalHandlerTest, FarMemoryInASigusr1Handler) {
    const Outcome outcome =
        run_scenario("signals_everywhere", {GetParam(), std::to_string(SIGUSR1)});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

TEST_P(SignalHandlerTest, FarMemoryInASigalrmHandler) {
    const Outcome outcome =
        run_scenario("signals_everywhere", {GetParam(), std::to_string(SIGALRM)});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

}  // namespace

}  // namespace hanare::api_test
