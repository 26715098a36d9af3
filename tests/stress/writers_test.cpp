// SPDX-License-Identifier: Apache-2.0
//
// Several threads write to shared blocks while eviction is forced, per engine and block size.
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
#include <cstdlib>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "base/units.hpp"
#include "pager/pool.hpp"

namespace hanare::pager {
namespace {

constexpr uint32_t kThreads = 4;
constexpr uint64_t kRunWordsMin = 4096;  // words of one visit, or half a block

uint64_t from_environment(const char* name, uint64_t fallback) {
    const char* text = std::getenv(name);
    return text == nullptr ? fallback : std::strtoull(text, nullptr, 0);
}

std::string store_directory() {
    const char* directory = std::getenv("TMPDIR");
    return directory == nullptr ? "/var/tmp" : directory;
}

class Writers : public testing::TestWithParam<std::tuple<EngineChoice, uint64_t>> {
protected:
    void SetUp() override {
        const auto [engine, block_bytes] = GetParam();
        options_.local_bytes = std::max<uint64_t>(16 * kMiB, 20 * block_bytes);
        options_.block_bytes = block_bytes;
        options_.read_ahead_blocks = 16;
        options_.engine = engine;
        options_.store.directory = store_directory();
        auto pool = Pool::open(options_);
        if (!pool && pool.error().status == HANARE_STATUS_NOT_SUPPORTED) {
            GTEST_SKIP() << pool.error().text;
        }
        ASSERT_TRUE(pool) << pool.error().text;
        pool_ = std::move(*pool);
        words_ = 4 * options_.local_bytes / sizeof(uint64_t);
        auto memory = pool_->alloc(words_ * sizeof(uint64_t), 0);
        ASSERT_TRUE(memory) << memory.error().text;
        far_ = static_cast<uint64_t*>(*memory);
    }

    PoolOptions options_;
    std::unique_ptr<Pool> pool_;
    uint64_t words_ = 0;
    uint64_t* far_ = nullptr;
};

// Adds one to every word of `thread` in a run of words that starts at a random place.
uint64_t visit(volatile uint64_t* far, uint64_t* shadow, uint64_t words, uint64_t run,
               uint32_t thread, Prng& random) {
    const uint64_t begin = round_down(random.below(words - run + 1), kThreads) + thread;
    uint64_t writes = 0;
    for (uint64_t i = begin; i < begin + run - kThreads; i += kThreads, ++writes) {
        far[i] = far[i] + 1;
        shadow[i / kThreads] += 1;
    }
    return writes;
}

TEST_P(Writers, LoseNothingWhileBlocksAreEvicted) {
    const uint64_t total = from_environment("HANARE_STRESS_WRITES", 13'000'000);
    const uint64_t seed = from_environment("HANARE_STRESS_SEED", 20'090'101);
    const uint64_t run = std::max(kRunWordsMin, options_.block_bytes / sizeof(uint64_t) / 2);
    std::vector<std::vector<uint64_t>> shadows(kThreads,
                                               std::vector<uint64_t>(words_ / kThreads, 0));
    std::vector<std::thread> threads;
    for (uint32_t thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
            Prng random(seed + thread);
            for (uint64_t done = 0; done < total / kThreads;) {
                done += visit(far_, shadows[thread].data(), words_, run, thread, random);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();

    uint64_t lost = 0;
    uint64_t written = 0;
    for (uint64_t i = 0; i < words_; ++i) {
        const uint64_t expected = shadows[i % kThreads][i / kThreads];
        written += expected;
        lost += far_[i] != expected;
    }
    hanare_counters counters = {};
    ASSERT_TRUE(pool_->stats(nullptr, counters));
    std::printf("[ seed %llu ] %llu writes, %llu lost, %llu write-backs, %llu faults\n",
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(written),
                static_cast<unsigned long long>(lost),
                static_cast<unsigned long long>(counters.write_backs),
                static_cast<unsigned long long>(counters.read_faults + counters.write_faults));
    EXPECT_EQ(lost, 0u);
    EXPECT_GE(written, total);
    EXPECT_GT(counters.write_backs, 0u) << "nothing was evicted";
}

// One thread, random single words, read and written in any mix, against a shadow copy; with advice,
// prefetch, flush and pin thrown in.
TEST_P(Writers, RandomOperationsAgreeWithAShadowCopy) {
    const uint64_t seed = from_environment("HANARE_STRESS_SEED", 19'980'101);
    const uint64_t steps_64k = from_environment("HANARE_STRESS_STEPS", 20'000);
    const uint64_t steps = std::clamp<uint64_t>(steps_64k * 64 * kKiB / options_.block_bytes,
                                                std::min<uint64_t>(steps_64k, 1000), 2 * steps_64k);
    std::printf("[ seed %llu ] %llu steps\n", static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(steps));
    Prng random(seed);
    std::vector<uint64_t> shadow(words_, 0);
    const uint64_t block_words = options_.block_bytes / sizeof(uint64_t);
    uint64_t wrong = 0;
    for (uint64_t step = 0; step < steps; ++step) {
        const uint64_t i = random.below(words_);
        const uint64_t length = std::min(words_ - i, 1 + random.below(2 * block_words));
        switch (random.below(64)) {
            case 0: ASSERT_TRUE(pool_->advise(far_ + i, length * 8, HANARE_ADVICE_DONTNEED)); break;
            case 1: ASSERT_TRUE(pool_->advise(far_ + i, length * 8, HANARE_ADVICE_WILLNEED)); break;
            case 2: ASSERT_TRUE(pool_->flush(far_ + i, length * 8)); break;
            case 3:
                ASSERT_TRUE(pool_->pin(far_ + i, 8, HANARE_ACCESS_WRITE));
                far_[i] = shadow[i] = random.next();
                ASSERT_TRUE(pool_->unpin(far_ + i, 8));
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

std::string case_name(const testing::TestParamInfo<Writers::ParamType>& info) {
    const auto [engine, block_bytes] = info.param;
    const char* const name = engine == EngineChoice::kSigbusMove   ? "Move"
                             : engine == EngineChoice::kSigbusCopy ? "Copy"
                             : engine == EngineChoice::kSegvRemap  ? "Remap"
                             : engine == EngineChoice::kThread     ? "Thread"
                                                                   : "Shared";
    return name + std::to_string(block_bytes / kKiB) + "K";
}

INSTANTIATE_TEST_SUITE_P(
    EnginesAndBlocks, Writers,
    testing::Combine(testing::Values(EngineChoice::kSigbusMove, EngineChoice::kSigbusCopy,
                                     EngineChoice::kSegvRemap, EngineChoice::kThread,
                                     EngineChoice::kShared),
                     testing::Values(4 * kKiB, 64 * kKiB, 256 * kKiB, 4 * kMiB)),
    case_name);

}  // namespace
}  // namespace hanare::pager
