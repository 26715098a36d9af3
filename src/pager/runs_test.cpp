// SPDX-License-Identifier: Apache-2.0
//
// Blocks that come and leave together, where streams write and read (fault/runs.cpp).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <thread>
#include <vector>

#include "base/prng.hpp"
#include "base/units.hpp"
#include "pager/fault/engine.hpp"
#include "pager/fault/pager.hpp"
#include "pager/test_pool.hpp"
#include "sys/inject.hpp"
#include "sys/test_support.hpp"

namespace hanare::pager {
namespace {

constexpr uint64_t kBlockBytes = 64 * kKiB;
constexpr uint64_t kLocalBytes = 16 * kMiB;
constexpr uint64_t kBytes = 64 * kMiB;
constexpr uint64_t kBlocks = kBytes / kBlockBytes;
constexpr uint64_t kWords = kBytes / sizeof(uint64_t);
constexpr uint64_t kBlockWords = kBlockBytes / sizeof(uint64_t);

uint64_t word_of(uint64_t index, uint64_t pass) { return (index + 1) * 0x9e3779b97f4a7c15 + pass; }

class RunsTest : public testing::Test {
protected:
    void SetUp() override {
        pool_ = open_test_pool(kLocalBytes, kBlockBytes);
        ASSERT_NE(pool_, nullptr);
        if (!pool_->pager().engine().moves_runs())
            GTEST_SKIP() << "needs an engine that moves pages (Linux 6.8)";
        allocate();
    }
    void TearDown() override { sys::inject::disarm_all(); }

    void allocate() {
        auto memory = pool_->alloc(kBytes, 0);
        ASSERT_TRUE(memory) << memory.error().text;
        words_ = static_cast<uint64_t*>(*memory);
    }
    void write_block(uint64_t block, uint64_t pass) {
        for (uint64_t i = block * kBlockWords; i < (block + 1) * kBlockWords; ++i) {
            words_[i] = word_of(i, pass);
        }
    }
    uint64_t wrong_words(uint64_t first, uint64_t last, uint64_t pass) const {
        uint64_t wrong = 0;
        for (uint64_t i = first; i < last; ++i) wrong += words_[i] != word_of(i, pass);
        return wrong;
    }
    hanare_counters counters() {
        hanare_counters result = {};
        EXPECT_TRUE(pool_->stats(words_, result));
        return result;
    }

    std::unique_ptr<Pool> pool_;
    uint64_t* words_ = nullptr;
};

TEST_F(RunsTest, AStreamOfFirstWritesFaultsForSeveralBlocksAtOnce) {
    for (uint64_t block = 0; block < kBlocks; ++block) write_block(block, 1);
    EXPECT_LT(counters().write_faults, kBlocks * 2 / 3);
    EXPECT_EQ(counters().zero_fills, kBlocks);
    EXPECT_EQ(wrong_words(0, kWords, 1), 0u);
}

TEST_F(RunsTest, SoDoesOneThatGoesBackwards) {
    for (uint64_t block = kBlocks; block-- > 0;) write_block(block, 1);
    EXPECT_LT(counters().write_faults, kBlocks * 2 / 3);
    EXPECT_EQ(wrong_words(0, kWords, 1), 0u);
}

TEST_F(RunsTest, AStreamOfReadsFaultsForSeveralBlocksAtOnce) {
    constexpr uint64_t kRead = 64;
    for (uint64_t block = 0; block < kRead; ++block) write_block(block, 1);
    ASSERT_TRUE(pool_->flush(words_, kBytes));
    ASSERT_TRUE(pool_->advise(words_, kBytes, HANARE_ADVICE_DONTNEED));
    ASSERT_TRUE(pool_->advise(words_, kRead * kBlockBytes, HANARE_ADVICE_WILLNEED));
    while (counters().prefetch_reads < kRead) std::this_thread::yield();
    const uint64_t before = counters().read_faults;
    EXPECT_EQ(wrong_words(0, kRead * kBlockWords, 1), 0u);
    EXPECT_LT(counters().read_faults - before, kRead / 2);
}

// What a stream of first writes comes upon and was written before is none of them.
TEST_F(RunsTest, WhatWasWrittenBeforeStays) {
    constexpr uint64_t kEvery = 30;
    for (uint64_t block = 25; block < kBlocks; block += kEvery) write_block(block, 2);
    ASSERT_TRUE(pool_->flush(words_, kBytes));
    ASSERT_TRUE(pool_->advise(words_, kBytes, HANARE_ADVICE_DONTNEED));
    const uint64_t before = counters().write_faults;
    for (uint64_t block = 0; block < kBlocks; ++block) {
        if (block % kEvery == 25) {
            words_[block * kBlockWords] = word_of(block * kBlockWords, 1);
        } else {
            write_block(block, 1);
        }
    }
    EXPECT_LT(counters().write_faults - before, kBlocks * 3 / 4);
    uint64_t wrong = 0;
    for (uint64_t block = 0; block < kBlocks; ++block) {
        const uint64_t first = block * kBlockWords;
        wrong += wrong_words(first, first + 1, 1);
        wrong += wrong_words(first + 1, first + kBlockWords, block % kEvery == 25 ? 2 : 1);
    }
    EXPECT_EQ(wrong, 0u);
}

// A stream of reads that now and then writes a word, of what it has just read or has passed, while
// moves fail: what is written is never taken for clean.
TEST_F(RunsTest, AStreamOfReadsKeepsWhatIsWritten) {
    Prng random(sys::testing::test_seed());
    std::vector<uint64_t> passes(kBlocks, 1);  // of each block's first word
    for (uint64_t block = 0; block < kBlocks; ++block) write_block(block, 1);
    uint64_t wrong = 0;
    for (uint64_t pass = 2; pass < 12; ++pass) {
        const bool goes_back = pass % 3 == 0;
        for (uint64_t i = 0; i < kBlocks; ++i) {
            const uint64_t block = goes_back ? kBlocks - 1 - i : i;
            if (pass > 4 && random.below(3) == 0) {
                sys::inject::arm(sys::inject::Call::kMove, EBUSY, random.below(6), 1);
            }
            const uint64_t first = block * kBlockWords;
            wrong += wrong_words(first, first + 1, passes[block]);
            wrong += wrong_words(first + 1, first + kBlockWords, 1);
            if (random.below(6) != 0) continue;
            const uint64_t back = random.below(std::min<uint64_t>(i, 12) + 1);
            const uint64_t changed = goes_back ? block + back : block - back;
            words_[changed * kBlockWords] = word_of(changed * kBlockWords, pass);
            passes[changed] = pass;
        }
        sys::inject::disarm_all();
        // In every other pass what is here stays.
        if (pass % 2 != 0) continue;
        ASSERT_TRUE(pool_->advise(words_, kBytes, HANARE_ADVICE_DONTNEED));
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_LT(counters().read_faults, 10 * kBlocks * 3 / 4);
}

// Writers of streams, each with a share that it writes and checks again and again, beside one that
// reads here and there, while moves and writes fail now and then.
void run_writers(Pool& pool, uint64_t* words, uint64_t seed, bool fails) {
    constexpr uint64_t kThreads = 3;
    constexpr uint64_t kShare = kBlocks / kThreads;
    std::atomic<bool> ends{false};
    std::atomic<uint64_t> wrong{0};
    std::vector<std::thread> threads;
    for (uint64_t thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
            Prng random(seed + thread);
            uint64_t* const own = words + thread * kShare * kBlockWords;
            for (uint64_t pass = 1; pass <= 12; ++pass) {
                const bool goes_back = random.below(2) == 0;
                for (uint64_t i = 0; i < kShare; ++i) {
                    const uint64_t block = goes_back ? kShare - 1 - i : i;
                    if (fails && random.below(4) == 0) {
                        sys::inject::arm(sys::inject::Call::kMove, EBUSY, random.below(8), 1);
                    }
                    if (fails && random.below(16) == 0) {
                        sys::inject::arm(sys::inject::Call::kWrite, EIO, random.below(8), 1);
                    }
                    for (uint64_t w = block * kBlockWords; w < (block + 1) * kBlockWords; ++w) {
                        std::atomic_ref(own[w]).store(word_of(w, pass + thread),
                                                      std::memory_order_relaxed);
                    }
                }
                for (uint64_t w = 0; w < kShare * kBlockWords; ++w) {
                    if (own[w] != word_of(w, pass + thread)) wrong.fetch_add(1);
                }
                // As it was before it was written; refused where a page cannot be moved.
                while (!pool.advise(own, kShare * kBlockBytes, HANARE_ADVICE_DISCARD)) {
                    std::this_thread::yield();
                }
            }
        });
    }
    std::thread reader([&] {
        Prng random(seed + kThreads);
        while (!ends.load()) {
            std::atomic_ref(words[random.below(kWords)]).load(std::memory_order_relaxed);
            std::this_thread::yield();
        }
    });
    for (std::thread& thread : threads) thread.join();
    ends.store(true);
    reader.join();
    EXPECT_EQ(wrong.load(), 0u);
}

TEST_F(RunsTest, NothingIsLostAmongSeveralStreams) {
    run_writers(*pool_, words_, sys::testing::test_seed(), false);
}

TEST_F(RunsTest, NothingIsLostWhereTheKernelRefuses) {
    run_writers(*pool_, words_, sys::testing::test_seed(), true);
}

}  // namespace
}  // namespace hanare::pager
