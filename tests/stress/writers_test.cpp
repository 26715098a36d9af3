// SPDX-License-Identifier: Apache-2.0
//
// Threads write to shared blocks while eviction is forced: every engine, block size, with and
// without the keeper's work ahead of need, 1 to 8 threads.
//
// Every thread owns the words whose index is its own modulo the number of threads, so all threads
// meet in every block and no word has two writers.  Each word counts the writes it received; the
// writer keeps the true count in a shadow array.  A lost write shows as a difference.
//
// HANARE_STRESS_WRITES sets the writes per case, HANARE_STRESS_STEPS the steps of the random
// operations on blocks of 64 KiB, HANARE_STRESS_SEED the seed; all are printed.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "base/units.hpp"
#include "stress/stress_support.hpp"
#include "stress/watchdog.hpp"

namespace hanare::stress {
namespace {

using api_test::budget_for;
using api_test::engine_refusal;
using api_test::FarPool;
using api_test::must;
using api_test::PoolConfig;

constexpr uint64_t kRunWordsMin = 4096;  // words of one visit, or half a block
constexpr uint64_t kVisitsMin = 32;      // more blocks than fit
constexpr uint64_t kFramesMin = 20;
constexpr uint64_t kLocalBytesMin = kMiB;

struct Case {
    std::string engine;
    uint64_t block_bytes;
    bool background;
    uint32_t threads;
};

std::string name_of(const Case& which) {
    std::string name = which.engine + "_" + std::to_string(which.block_bytes / kKiB) + "K_" +
                       (which.background ? "background_" : "alone_") +
                       std::to_string(which.threads);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

std::string case_name(const testing::TestParamInfo<Case>& info) { return name_of(info.param); }

std::vector<Case> cases(const std::vector<uint32_t>& thread_counts) {
    std::vector<Case> all;
    for (const char* engine : api_test::all_engines()) {
        for (const uint64_t block_bytes :
             {4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB, kMiB, 4 * kMiB}) {
            for (const bool background : {true, false}) {
                for (const uint32_t threads : thread_counts) {
                    all.push_back({engine, block_bytes, background, threads});
                }
            }
        }
    }
    return all;
}

// Four times as much far memory as fits.
class Stress : public testing::TestWithParam<Case> {
protected:
    void SetUp() override {
        const Case& which = GetParam();
        if (const auto refusal = engine_refusal(which.engine.c_str()); !refusal.empty()) {
            GTEST_SKIP() << refusal;
        }
        const sys::testing::TemporaryDirectory directory;
        const uint64_t frames = std::max(kFramesMin, kLocalBytesMin / which.block_bytes);
        const uint64_t bytes = 4 * frames * which.block_bytes;
        PoolConfig config;
        config.engine = which.engine;
        config.store = "file:" + directory.path();
        config.options.block_bytes = which.block_bytes;
        config.options.local_bytes = budget_for(frames, which.block_bytes, bytes);
        config.options.background = which.background ? "on" : "off";
        pool_ = std::make_unique<FarPool>(config);
        words_ = bytes / sizeof(uint64_t);
        far_ = pool_->alloc_words(bytes);
    }

    std::unique_ptr<FarPool> pool_;
    uint64_t words_ = 0;
    uint64_t* far_ = nullptr;
};

class Writers : public Stress {};

// Adds one to every word of `thread` in a run of words that starts at a random place.
uint64_t visit(volatile uint64_t* far, uint64_t* shadow, uint64_t words, uint64_t run,
               uint32_t thread, uint32_t threads, Prng& random) {
    const uint64_t start = random.below(words - run + 1);
    const uint64_t begin = start - start % threads + thread;
    uint64_t writes = 0;
    for (uint64_t i = begin; i < begin + run - threads; i += threads, ++writes) {
        far[i] = far[i] + 1;
        shadow[i / threads] += 1;
    }
    return writes;
}

TEST_P(Writers, LoseNothingWhileBlocksAreEvicted) {
    const Case& which = GetParam();
    const uint32_t threads = which.threads;
    const uint64_t total = from_environment("HANARE_STRESS_WRITES", 150'000);
    const uint64_t seed = from_environment("HANARE_STRESS_SEED", 20'090'101);
    const Watchdog watchdog(name_of(which), patience_s() + static_cast<int>(total / 200'000));
    const uint64_t run = std::max(kRunWordsMin, which.block_bytes / sizeof(uint64_t) / 2);
    std::vector<std::vector<uint64_t>> shadows(threads,
                                               std::vector<uint64_t>(words_ / threads + 1, 0));
    std::vector<std::function<void()>> bodies;
    for (uint32_t thread = 0; thread < threads; ++thread) {
        bodies.emplace_back([&, thread] {
            Prng random(seed + thread);
            uint64_t done = 0;
            for (uint64_t i = 0; i < kVisitsMin / threads || done < total / threads; ++i) {
                done += visit(far_, shadows[thread].data(), words_, run, thread, threads, random);
            }
        });
    }
    api_test::run_threads(bodies);

    uint64_t lost = 0;
    uint64_t written = 0;
    for (uint64_t i = 0; i < words_; ++i) {
        const uint64_t expected = shadows[i % threads][i / threads];
        written += expected;
        lost += far_[i] != expected;
    }
    const hanare_counters counters = pool_->stats();
    std::printf("[ seed %llu ] %llu writes, %llu lost, %llu write-backs, %llu faults\n",
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(written),
                static_cast<unsigned long long>(lost),
                static_cast<unsigned long long>(counters.write_backs),
                static_cast<unsigned long long>(counters.read_faults + counters.write_faults));
    EXPECT_EQ(lost, 0u);
    EXPECT_GE(written, total / threads * threads);
    EXPECT_GT(counters.write_backs, 0u) << "nothing was evicted";
}

class Operations : public Stress {};

// One thread, random single words, read and written in any mix, against a shadow copy; with advice,
// prefetch, flush and pin thrown in.
TEST_P(Operations, AgreeWithAShadowCopy) {
    const uint64_t block_bytes = GetParam().block_bytes;
    const uint64_t seed = from_environment("HANARE_STRESS_SEED", 19'980'101);
    const uint64_t steps_64k = from_environment("HANARE_STRESS_STEPS", 500);
    const uint64_t steps = std::clamp<uint64_t>(steps_64k * 64 * kKiB / block_bytes,
                                                std::min<uint64_t>(steps_64k, 300), 2 * steps_64k);
    std::printf("[ seed %llu ] %llu steps\n", static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(steps));
    const Watchdog watchdog(name_of(GetParam()), patience_s() + static_cast<int>(steps / 50));
    Prng random(seed);
    std::vector<uint64_t> shadow(words_, 0);
    const uint64_t block_words = block_bytes / sizeof(uint64_t);
    hanare_pool* const pool = pool_->get();
    uint64_t wrong = 0;
    for (uint64_t step = 0; step < steps; ++step) {
        const uint64_t i = random.below(words_);
        const uint64_t length = std::min(words_ - i, 1 + random.below(2 * block_words));
        switch (random.below(64)) {
            case 0: must(hanare_advise(pool, far_ + i, length * 8, HANARE_ADVICE_DONTNEED)); break;
            case 1: must(hanare_advise(pool, far_ + i, length * 8, HANARE_ADVICE_WILLNEED)); break;
            case 2: must(hanare_flush(pool, far_ + i, length * 8)); break;
            case 3:
                must(hanare_pin(pool, far_ + i, 8, HANARE_ACCESS_WRITE));
                far_[i] = shadow[i] = random.next();
                must(hanare_unpin(pool, far_ + i, 8));
                break;
            case 4:
                for (uint64_t j = i; j < i + length; ++j) far_[j] = shadow[j] = j ^ seed;
                break;
            case 5:
                for (uint64_t j = i; j < i + length; ++j) wrong += far_[j] != shadow[j];
                break;
            default:
                if (random.below(2) == 0) far_[i] = shadow[i] = random.next();
                wrong += far_[i] != shadow[i];
        }
    }
    for (uint64_t i = 0; i < words_; ++i) wrong += far_[i] != shadow[i];
    EXPECT_EQ(wrong, 0u);
}

INSTANTIATE_TEST_SUITE_P(, Writers, testing::ValuesIn(cases({1, 2, 4, 8})), case_name);
INSTANTIATE_TEST_SUITE_P(, Operations, testing::ValuesIn(cases({1})), case_name);

}  // namespace
}  // namespace hanare::stress
