// SPDX-License-Identifier: Apache-2.0
//
// Many short runs, each with everything drawn from its seed: engine, block sizes, budget, policy,
// background, threads, whether all of them share one CPU, and what the threads do.  Every run has a
// watchdog.
//
// HANARE_STRESS_RUNS sets how many, HANARE_STRESS_SEED the seed of the first; the next one has the
// next seed.  A run is repeated with its own seed and HANARE_STRESS_RUNS=1.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <random>

#include "base/prng.hpp"
#include "stress/stress_support.hpp"
#include "stress/watchdog.hpp"
#include "sys/process_usage.hpp"

namespace hanare::stress {
namespace {

using api_test::FarPool;
using api_test::last_error;
using api_test::must;

constexpr uint64_t kSharedBytesMax = 24 * kMiB;

template <typename T, size_t N>
T pick(Prng& random, const T (&choices)[N]) {
    return choices[random.below(N)];
}

struct Plan {
    uint64_t seed;
    std::string engine;
    uint64_t block_bytes;
    uint64_t frames;
    uint64_t shared_bytes;
    uint32_t threads;
    uint32_t read_ahead_blocks;
    const char* replacement;
    const char* background;
    uint64_t steps;  // of each thread
    bool one_cpu;    // who waits in a loop keeps whom it waits for from running

    std::string text() const {
        return "seed " + std::to_string(seed) + ": " + engine + ", blocks of " +
               format_size(block_bytes) + ", " + std::to_string(frames) + " frames for " +
               format_size(shared_bytes) + ", " + std::to_string(threads) +
               " threads, read-ahead " + std::to_string(read_ahead_blocks) + ", " + replacement +
               ", background " + background + ", " + std::to_string(steps) + " steps" +
               (one_cpu ? ", one CPU" : "");
    }
};

Plan make_plan(uint64_t seed) {
    Prng random(seed);
    Plan plan;
    plan.seed = seed;
    plan.engine = usable_engines()[random.below(usable_engines().size())];
    // Large blocks are slow to test; once in a while is enough.
    plan.block_bytes = 4 * kKiB << std::min(random.below(11), random.below(11));
    plan.frames = 16 + random.below(48);
    const uint64_t fits = plan.frames * plan.block_bytes;
    const uint64_t wanted = fits * (50 + random.below(450)) / 100;
    plan.shared_bytes =
        std::max(std::min(wanted, kSharedBytesMax), plan.block_bytes * (1 + random.below(24)));
    plan.threads = 1 + static_cast<uint32_t>(random.below(8));
    plan.read_ahead_blocks = pick(random, {HANARE_READ_AHEAD_OFF, 1u, 4u, 16u, 64u});
    plan.replacement = pick(random, {"second_chance", "second_chance", "round_robin"});
    plan.background = pick(random, {"on", "off"});
    plan.steps = 100 + random.below(300);
    plan.one_cpu = random.below(3) == 0;
    return plan;
}

// What the call may be refused for, when others pin and reserve at the same time.
void expect(hanare_status status, std::initializer_list<hanare_status> allowed) {
    if (status == HANARE_STATUS_OK) return;
    if (std::find(allowed.begin(), allowed.end(), status) == allowed.end()) must(status);
}

// One thread's share of a run: the words of the shared region whose index is its own modulo the
// number of threads, and regions that it allocates and frees.
class Actor {
public:
    Actor(const Plan& plan, hanare_pool* pool, uint64_t* shared, uint32_t number)
        : plan_(plan),
          pool_(pool),
          shared_(shared),
          number_(number),
          words_(plan.shared_bytes / sizeof(uint64_t)),
          random_(plan.seed * 1'000'003 + number),
          shadow_(words_ / plan.threads + 1, 0) {}

    void run() {
        for (uint64_t step = 0; step < plan_.steps; ++step) act();
        while (pinned_bytes_ != 0) unpin();
        drop_own();
    }

    // After all threads have ended.
    uint64_t wrong() {
        for (uint64_t i = number_; i < words_; i += plan_.threads) check(i);
        return wrong_;
    }

private:
    void act() {
        switch (random_.below(24)) {
            case 0: return advise();
            case 1: return pinned_bytes_ == 0 ? pin() : unpin();
            case 2: return flush();
            case 3: return own_ == nullptr ? make_own() : drop_own();
            case 4: return random_.below(4) == 0 ? discard_own() : use_own();
            case 5: return use_own();
            case 6:
            case 7:
            case 8: return stream(1);
            case 9: return stream(-1);
            case 10:
            case 11: return stride();
            default: return scatter();
        }
    }

    uint64_t any_word() { return random_.below(words_); }
    // A word of ours, not after the last.
    uint64_t ours(uint64_t index) const {
        const uint64_t down = index - index % plan_.threads + number_;
        return down < words_ ? down : number_ < words_ ? number_ : UINT64_MAX;
    }
    void check(uint64_t i) {
        const volatile uint64_t* const far = shared_;
        wrong_ += far[i] != shadow_[i / plan_.threads];
    }
    void use(uint64_t index, bool write) {
        const uint64_t i = ours(index);
        if (i == UINT64_MAX) return;
        check(i);
        if (!write) return;
        volatile uint64_t* const far = shared_;
        far[i] = far[i] + 1;
        ++shadow_[i / plan_.threads];
    }
    void stream(int direction) {
        const bool write = random_.below(2) == 0;
        const uint64_t count = 1 + random_.below(4 * plan_.block_bytes / sizeof(uint64_t));
        uint64_t at = any_word();
        const uint64_t step = 1 + random_.below(64);
        for (uint64_t i = 0; i < count; i += step) {
            use(at, write);
            const uint64_t room = direction > 0 ? words_ - at : at + 1;
            if (room <= step) return;
            at = direction > 0 ? at + step : at - step;
        }
    }
    void stride() {
        const bool write = random_.below(2) == 0;
        const uint64_t distance =
            plan_.block_bytes / sizeof(uint64_t) * (1 + random_.below(3)) + random_.below(3);
        for (uint64_t at = any_word(), i = 0; i < 16 && at < words_; at += distance, ++i) {
            use(at, write);
        }
    }
    void scatter() {
        const bool write = random_.below(2) == 0;
        const uint64_t spread = random_.below(3) == 0 ? words_ : std::min<uint64_t>(words_, 4096);
        for (uint64_t i = 0; i < 12; ++i) use(random_.below(spread), write);
    }
    struct Range {
        uint64_t* begin;
        size_t bytes;
    };
    Range any_range(uint64_t blocks_max) {
        const uint64_t at = any_word();
        const uint64_t most = blocks_max * plan_.block_bytes / sizeof(uint64_t);
        const uint64_t count = std::min(words_ - at, 1 + random_.below(most));
        return {shared_ + at, count * sizeof(uint64_t)};
    }
    void advise() {
        const Range range = any_range(8);
        const auto advice =
            pick(random_, {HANARE_ADVICE_NORMAL, HANARE_ADVICE_SEQUENTIAL, HANARE_ADVICE_RANDOM,
                           HANARE_ADVICE_WILLNEED, HANARE_ADVICE_DONTNEED});
        must(hanare_advise(pool_, range.begin, range.bytes, advice));
    }
    void flush() {
        const Range range = any_range(8);
        expect(hanare_flush(pool_, range.begin, range.bytes), {HANARE_STATUS_BUSY});
    }
    void pin() {
        const Range range = any_range(2);
        const auto access = pick(random_, {HANARE_ACCESS_READ, HANARE_ACCESS_WRITE});
        const hanare_status status = hanare_pin(pool_, range.begin, range.bytes, access);
        expect(status, {HANARE_STATUS_LIMIT});
        if (status != HANARE_STATUS_OK) return;
        pinned_ = range.begin;
        pinned_bytes_ = range.bytes;
    }
    void unpin() {
        must(hanare_unpin(pool_, pinned_, pinned_bytes_));
        pinned_bytes_ = 0;
    }
    void make_own() {
        const hanare_alloc_options options = {sizeof options,
                                              plan_.block_bytes >> (random_.below(2) * 2), nullptr};
        if (options.block_bytes < 4 * kKiB) return;
        own_bytes_ = 1 + random_.below(6 * plan_.block_bytes);
        void* memory = nullptr;
        const hanare_status status = hanare_alloc(pool_, own_bytes_, &options, &memory);
        expect(status, {HANARE_STATUS_LIMIT, HANARE_STATUS_STORE_FULL});
        if (status == HANARE_STATUS_OK) own_ = static_cast<unsigned char*>(memory);
        hanare_counters stats = {};
        stats.struct_size = sizeof stats;
        if (own_ != nullptr) must(hanare_stats(pool_, own_, &stats));
        own_block_bytes_ = stats.block_bytes;
        own_shadow_.assign(status == HANARE_STATUS_OK ? own_bytes_ : 0, 0);
    }
    void use_own() {
        if (own_ == nullptr) return;
        for (int i = 0; i < 32; ++i) {
            const uint64_t at = random_.below(own_bytes_);
            wrong_ += own_[at] != own_shadow_[at];
            if (random_.below(2) == 0) own_[at] = own_shadow_[at] = static_cast<uint8_t>(at + 1);
        }
    }
    // Only blocks that lie wholly in the range lose their content; which ones, the sizes tell.
    void discard_own() {
        if (own_ == nullptr) return;
        const uint64_t first = random_.below(own_bytes_);
        const uint64_t last = first + 1 + random_.below(own_bytes_ - first);
        must(hanare_advise(pool_, own_ + first, last - first, HANARE_ADVICE_DISCARD));
        for (uint64_t begin = 0; begin < own_bytes_; begin += own_block_bytes_) {
            const uint64_t end = std::min(begin + own_block_bytes_, own_bytes_);
            if (begin < first || end > last) continue;
            std::fill(own_shadow_.begin() + static_cast<int64_t>(begin),
                      own_shadow_.begin() + static_cast<int64_t>(end), uint8_t{0});
        }
    }
    void drop_own() {
        if (own_ == nullptr) return;
        use_own();
        must(hanare_free(pool_, own_));
        own_ = nullptr;
    }

    const Plan& plan_;
    hanare_pool* const pool_;
    uint64_t* const shared_;
    const uint32_t number_;
    const uint64_t words_;
    Prng random_;
    std::vector<uint64_t> shadow_;
    uint64_t wrong_ = 0;
    void* pinned_ = nullptr;
    uint64_t pinned_bytes_ = 0;
    unsigned char* own_ = nullptr;
    uint64_t own_bytes_ = 0;
    uint64_t own_block_bytes_ = 0;
    std::vector<uint8_t> own_shadow_;
};

// This thread, and those that it begins, on the CPU where it is.
class OneCpu {
public:
    explicit OneCpu(bool wanted) {
        EXPECT_EQ(sched_getaffinity(0, sizeof before_, &before_), 0);
        if (wanted) {
            EXPECT_TRUE(sys::stay_on_this_cpu());
        }
    }
    OneCpu(const OneCpu&) = delete;
    OneCpu& operator=(const OneCpu&) = delete;
    ~OneCpu() { EXPECT_EQ(sched_setaffinity(0, sizeof before_, &before_), 0); }

private:
    cpu_set_t before_{};
};

uint64_t run_plan(const Plan& plan) {
    const OneCpu one_cpu(plan.one_cpu);
    const sys::testing::TemporaryDirectory directory;
    api_test::PoolConfig config;
    config.engine = plan.engine;
    config.store = "file:" + directory.path();
    config.options.block_bytes = plan.block_bytes;
    config.options.local_bytes =
        api_test::budget_for(plan.frames, plan.block_bytes, plan.shared_bytes);
    config.options.read_ahead_blocks = plan.read_ahead_blocks;
    config.options.replacement = plan.replacement;
    config.options.background = plan.background;
    const FarPool pool(config);
    void* shared = nullptr;
    must(hanare_alloc(pool.get(), plan.shared_bytes, nullptr, &shared));
    std::vector<Actor> actors;
    std::vector<std::function<void()>> bodies;
    for (uint32_t number = 0; number < plan.threads; ++number) {
        actors.emplace_back(plan, pool.get(), static_cast<uint64_t*>(shared), number);
    }
    for (Actor& actor : actors) bodies.emplace_back([&actor] { actor.run(); });
    api_test::run_threads(bodies);
    uint64_t wrong = 0;
    for (Actor& actor : actors) wrong += actor.wrong();
    return wrong;
}

TEST(RandomRuns, LoseNothingAndEnd) {
    const uint64_t runs = from_environment("HANARE_STRESS_RUNS", 30);
    const uint64_t first = from_environment("HANARE_STRESS_SEED", std::random_device{}());
    ASSERT_FALSE(usable_engines().empty());
    std::printf("HANARE_STRESS_SEED=%llu, %llu runs\n", static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(runs));
    std::fflush(stdout);
    for (uint64_t i = 0; i < runs; ++i) {
        const Plan plan = make_plan(first + i);
        const Watchdog watchdog(plan.text(), patience_s());
        ASSERT_EQ(run_plan(plan), 0u) << plan.text();
    }
}

// A watchdog that never bites proves nothing: a thread waits here for what never comes.
TEST(WatchdogDeathTest, TellsWhereThreadsAre) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto hang = [] {
        FarPool pool(api_test::PoolSetup{usable_engines().front().c_str(), 64 * kKiB}, 16, kMiB);
        api_test::poke(pool.alloc(kMiB), 64 * kKiB, 3, 1);
        const Watchdog watchdog("a test that hangs", 1);
        std::atomic<uint32_t> never{0};
        never.wait(0);
    };
    EXPECT_EXIT(hang(), testing::ExitedWithCode(1),
                "hangs since 1 s: a test that hangs\n"
                "region of 16 blocks of 65536 bytes(.|\n)*"
                "  15 absent\n(.|\n)*  1 writable\n(.|\n)*"
                "comm: hanare-keeper\n(.|\n)*wchan: (.|\n)*hanare_random_runs_test\\+0x");
}

}  // namespace
}  // namespace hanare::stress
