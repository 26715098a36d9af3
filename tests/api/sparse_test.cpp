// SPDX-License-Identifier: Apache-2.0
//
// Random accesses fetch parts of blocks: the data are right whatever mixture of parts and whole
// blocks serves them, and parts are really all that is transferred.
#include <array>
#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"
#include "base/prng.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 256 * kKiB;
constexpr uint64_t kPart = 4 * kKiB;
constexpr uint64_t kFrames = 24;
constexpr uint64_t kBlocks = 96;
constexpr uint64_t kBytes = kBlocks * kBlock;
constexpr uint64_t kWords = kBytes / sizeof(uint64_t);

class SparseTest : public EngineTest {
protected:
    void open(uint32_t read_ahead_blocks = HANARE_READ_AHEAD_OFF) {
        pool_ = std::make_unique<FarPool>(setup(kBlock), kFrames, 2 * kBytes, read_ahead_blocks);
        words_ = pool_->alloc_words(kBytes);
    }
    // One word in every part, in an order without neighbours.
    template <typename Visit>
    void visit_parts_randomly(Visit visit) {
        constexpr uint64_t kParts = kBytes / kPart;
        constexpr uint64_t kStride = 797;  // parts, odd: passes every part once
        static_assert(kParts % 2 == 0 && kStride * kPart > 2 * kBlock);
        for (uint64_t i = 0; i < kParts; ++i) {
            visit((i * kStride) % kParts * (kPart / sizeof(uint64_t)) + i % 512);
        }
    }
    std::unique_ptr<FarPool> pool_;
    uint64_t* words_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(, SparseTest, testing::Values("sigbus-move", "sigbus-copy", "thread"),
                         engine_test_name);

TEST_P(SparseTest, RandomReadsFetchPartsAndNoMore) {
    open();
    fill(words_, kBytes, 1);
    pool_->make_absent(words_, kBytes);
    const hanare_counters before = pool_->stats();
    uint64_t wrong = 0;
    visit_parts_randomly([&](uint64_t i) { wrong += words_[i] != pattern(1, i); });
    const hanare_counters after = pool_->stats();
    EXPECT_EQ(wrong, 0u);
    EXPECT_GT(after.part_reads - before.part_reads, kBytes / kPart * 8 / 10);
    EXPECT_LT(after.demand_reads - before.demand_reads, kBytes / kPart / 20)
        << "blocks are completed only where most of them is there by chance";
    EXPECT_EQ(after.written_bytes, before.written_bytes) << "clean parts need no write";
    EXPECT_LE(after.resident_bytes + after.metadata_bytes, after.budget_bytes);
    EXPECT_LE(after.frame_bytes + after.metadata_bytes, after.budget_bytes);
}

// A read and then a write at each place, by threads that disturb each other's observations, with a
// quarter of each block there: none of that makes them streams.
TEST_P(SparseTest, RandomUpdatesByThreadsFetchPartsAndNoMore) {
    open(16);
    fill(words_, kBytes, 1);
    pool_->make_absent(words_, kBytes);
    constexpr uint64_t kThreads = 2;
    constexpr uint64_t kUpdates = 12000;
    std::array<std::vector<uint64_t>, kThreads> updated;
    std::vector<std::function<void()>> bodies;
    const hanare_counters before = pool_->stats();
    for (uint64_t thread = 0; thread < kThreads; ++thread) {
        bodies.push_back([&, thread] {
            Prng random(20090101 + thread);
            for (uint64_t i = 0; i < kUpdates; ++i) {
                const uint64_t word = random.below(kWords / kThreads) * kThreads + thread;
                auto& place = reinterpret_cast<volatile uint64_t&>(words_[word]);
                const uint64_t value = place;
                place = value + 1;
                updated[thread].push_back(word);
            }
        });
    }
    run_threads(bodies);
    const hanare_counters after = pool_->stats();
    const uint64_t parts = after.part_reads - before.part_reads;
    EXPECT_GT(parts, kThreads * kUpdates / 2);
    EXPECT_LT(after.demand_reads + after.completions + after.prefetch_reads - before.demand_reads -
                  before.completions - before.prefetch_reads,
              parts / 20)
        << "in so few blocks, some accesses go to a neighbour by chance";
    for (const auto& words : updated) {
        for (const uint64_t word : words) --words_[word];
    }
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < kWords; ++i) wrong += words_[i] != pattern(1, i);
    EXPECT_EQ(wrong, 0u);
}

TEST_P(SparseTest, AStrideThatNeedsOneWordOfABlockFetchesParts) {
    open(16);
    fill(words_, kBytes, 1);
    pool_->make_absent(words_, kBytes);
    const hanare_counters before = pool_->stats();
    for (uint64_t i = 0; i < kWords; i += 2 * kBlock / sizeof(uint64_t)) words_[i] += 1;
    const hanare_counters after = pool_->stats();
    // Two blocks to know the stride; several handler threads know less of each other's faults.
    EXPECT_GE(after.part_reads - before.part_reads, kBlocks / 2 - 8);
    EXPECT_LE(after.read_bytes - before.read_bytes, kBytes / 5);
}

// Columns of an array of rows of 64 KiB: each pass needs 4 parts of 64 of each block, the next ones
// the same.
TEST_P(SparseTest, PassesThatNeedTheSamePartsKeepThem) {
    open(16);
    fill(words_, kBytes, 1);
    pool_->make_absent(words_, kBytes);
    constexpr uint64_t kRow = 64 * kKiB / sizeof(uint64_t);
    uint64_t wrong = 0;
    const auto pass_through = [&](uint64_t column) {
        const uint64_t before = pool_->stats().read_bytes;
        for (uint64_t i = column; i < kWords; i += kRow) wrong += words_[i] != pattern(1, i);
        return pool_->stats().read_bytes - before;
    };
    const uint64_t first = pass_through(0);
    EXPECT_GT(first, kBytes / 2) << "whole blocks, before anything is known";
    uint64_t column = 1;
    while (column < 10) pass_through(column++);
    uint64_t bytes = 0;
    while (column < 20) bytes += pass_through(column++);
    EXPECT_LT(bytes, kBytes / 4);
    EXPECT_EQ(wrong, 0u);
    // Who needs all of the blocks then gets them as a whole.
    const hanare_counters before = pool_->stats();
    for (uint64_t i = 0; i < kWords; ++i) wrong += words_[i] != pattern(1, i);
    EXPECT_EQ(wrong, 0u);
    const hanare_counters after = pool_->stats();
    EXPECT_LT(after.part_reads - before.part_reads, kBytes / kPart / 4);
}

TEST_P(SparseTest, AStrideThatNeedsItsBlocksIsReadAhead) {
    open(16);
    fill(words_, kBytes, 1);
    pool_->make_absent(words_, kBytes);
    const hanare_counters before = pool_->stats();
    uint64_t wrong = 0;
    for (uint64_t block = kBlocks - 1; block < kBlocks; block -= 3) {
        const uint64_t first = block * kBlock / sizeof(uint64_t);
        for (uint64_t i = 0; i < kBlock / sizeof(uint64_t); ++i) {
            wrong += words_[first + i] != pattern(1, first + i);
        }
    }
    EXPECT_EQ(wrong, 0u);
    const hanare_counters after = pool_->stats();
    EXPECT_GT(after.prefetch_reads - before.prefetch_reads, kBlocks / 3 * 3 / 4);
    EXPECT_LT(after.read_bytes - before.read_bytes, kBytes / 2);
}

// As a merge of sorted runs reads: no two faults in a row belong together.
TEST_P(SparseTest, StreamsThatTakeTurnsFetchBlocks) {
    constexpr uint64_t kStreams = 6;
    constexpr uint64_t kLength = kWords / kStreams;
    open(2);
    fill(words_, kBytes, 1);
    pool_->make_absent(words_, kBytes);
    const hanare_counters before = pool_->stats();
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < kLength; i += 64) {
        for (uint64_t at = i; at < kWords; at += kLength) wrong += words_[at] != pattern(1, at);
    }
    EXPECT_EQ(wrong, 0u);
    const hanare_counters after = pool_->stats();
    EXPECT_LT(after.part_reads - before.part_reads, kBytes / kPart / 8);
    EXPECT_LT(after.read_bytes - before.read_bytes, 2 * kBytes);
}

// As a transposition passes through rows: in order, but a few words of each block at a time.
class SparseStreamTest : public SparseTest {
protected:
    static constexpr uint64_t kRows = 4;  // in a block
    static constexpr uint64_t kRowWords = kBlock / kRows / sizeof(uint64_t);

    // What a pass has transferred.
    uint64_t pass(uint64_t column, uint64_t change) {
        const uint64_t before = transferred();
        for (uint64_t i = column; i < kWords; i += kRowWords) add(i, change);
        return transferred() - before;
    }
    uint64_t pass_backward(uint64_t column, uint64_t change) {
        const uint64_t before = transferred();
        for (uint64_t i = kWords - kRowWords + column; i < kWords; i -= kRowWords) add(i, change);
        return transferred() - before;
    }
    // Also writes where that changes nothing.
    void add(uint64_t i, uint64_t change) {
        volatile uint64_t& word = words_[i];
        word = word + change;
    }
    uint64_t transferred() const {
        const hanare_counters stats = pool_->stats();
        return stats.read_bytes + stats.written_bytes;
    }
    // Until streams are served by parts; how often they had to be passed.
    uint64_t pass_until_low(uint64_t most) {
        uint64_t passes = 0;
        while (passes < most && pass(passes, 0) >= kBytes / 8) ++passes;
        return passes;
    }
};
INSTANTIATE_TEST_SUITE_P(, SparseStreamTest,
                         testing::Values("sigbus-move", "sigbus-copy", "thread"), engine_test_name);

TEST_P(SparseStreamTest, IsServedByPartsOnceItsNeedsAreKnown) {
    open(16);
    fill(words_, kBytes, 1);
    pool_->make_absent(words_, kBytes);
    EXPECT_GT(pass(0, 1), kBytes / 2);
    for (uint64_t column = 1; column < 12; ++column) pass(column, 1);
    for (uint64_t column = 12; column < 16; ++column) EXPECT_LT(pass(column, 1), kBytes / 8);
    uint64_t wrong = 0;
    const hanare_counters before = pool_->stats();
    for (uint64_t i = 0; i < kWords; ++i) {
        wrong += words_[i] != pattern(1, i) + (i % kRowWords < 16 ? 1 : 0);
    }
    EXPECT_EQ(wrong, 0u);
    // That stream went through its blocks.
    EXPECT_LT(pool_->stats().part_reads - before.part_reads, kBytes / kPart / 8);
}

TEST_P(SparseStreamTest, IsServedByPartsAtOnceWhereNothingIsStored) {
    open(16);
    pass(0, 1);
    EXPECT_LT(pool_->stats().resident_bytes + pool_->stats().written_bytes, kBytes * 3 / 4);
    for (uint64_t column = 1; column < 8; ++column) pass(column, 1);
    EXPECT_LT(pass(8, 1), kBytes / 8);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < kWords; ++i) wrong += words_[i] != (i % kRowWords < 9 ? 1 : 0);
    EXPECT_EQ(wrong, 0u);
}

TEST_P(SparseStreamTest, IsServedByPartsBackwardToo) {
    open(16);
    fill(words_, kBytes, 1);
    pool_->make_absent(words_, kBytes);
    for (uint64_t column = 0; column < 12; ++column) pass_backward(column, 1);
    for (uint64_t column = 12; column < 16; ++column) {
        EXPECT_LT(pass_backward(column, 1), kBytes / 8);
    }
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < kWords; ++i) {
        wrong += words_[i] != pattern(1, i) + (i % kRowWords < 16 ? 1 : 0);
    }
    EXPECT_EQ(wrong, 0u);
}

// Passes that used all of their blocks make samples rare, but never so rare that none is met.
TEST_P(SparseStreamTest, IsNoticedAfterManyPassesThatUsedAll) {
    open(16);
    fill(words_, kBytes, 1);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(mismatches(words_, kBytes, 1), 0u);
    EXPECT_LT(pass_until_low(12), 12u);
}

// Every eighth part and more is much, wherever it lies: by parts, each would take a read.
TEST_P(SparseStreamTest, ThatNeedsScatteredPartsOfABlockGetsItWhole) {
    for (const uint64_t stride : {2 * kPart, 8 * kPart}) {
        SCOPED_TRACE(stride);
        open(16);
        fill(words_, kBytes, 1);
        pool_->make_absent(words_, kBytes);
        ASSERT_LT(pass_until_low(12), 12u);
        pool_->make_absent(words_, kBytes);
        const hanare_counters before = pool_->stats();
        uint64_t wrong = 0;
        for (uint64_t i = 0; i < kWords; i += stride / sizeof(uint64_t)) {
            wrong += words_[i] != pattern(1, i);
        }
        EXPECT_EQ(wrong, 0u);
        const hanare_counters after = pool_->stats();
        EXPECT_LT(after.part_reads - before.part_reads, kBytes / stride / 4);
        EXPECT_GT(after.prefetch_reads - before.prefetch_reads, kBlocks / 2);
    }
}

// Parts that come together in several passes do not make a block that was passed through.
TEST_P(SparseStreamTest, ThatNeedsOtherPartsEachTimeIsServedByThem) {
    constexpr uint64_t kRow = kBlock / 2 / sizeof(uint64_t);
    constexpr uint64_t kPages = 12;
    open(16);
    fill(words_, kBytes, 1);
    pool_->make_absent(words_, kBytes);
    ASSERT_LT(pass_until_low(12), 12u);
    const uint64_t before = transferred();
    for (uint64_t page = 0; page < kPages; ++page) {
        for (uint64_t i = page * kPart / sizeof(uint64_t); i < kWords; i += kRow) add(i, 1);
    }
    // A sixteenth is used, read and written.  As whole blocks, it would be twice what there is.
    EXPECT_LT(transferred() - before, kPages * kBytes / 4);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < kWords; ++i) {
        const bool changed = i % (kPart / sizeof(uint64_t)) == 0 && i % kRow < kPages * 512;
        wrong += words_[i] != pattern(1, i) + (changed ? 1 : 0);
    }
    EXPECT_EQ(wrong, 0u);
}

TEST_P(SparseTest, FirstTouchesOfPartsLeaveZerosBetween) {
    open();
    {
        // What lies in the store from before must not shine through.
        uint64_t* const past = words_;
        fill(past, kBytes, 7);
        pool_->make_absent(past, kBytes);
        must(hanare_free(pool_->get(), past));
        words_ = pool_->alloc_words(kBytes);
    }
    std::vector<uint64_t> expected(kWords);
    uint64_t step = 0;
    visit_parts_randomly([&](uint64_t i) {
        if (++step % 3 == 0) return;
        words_[i] = expected[i] = pattern(2, i);
    });
    const hanare_counters stats = pool_->stats();
    EXPECT_LT(stats.written_bytes - kBytes, kBytes) << "whole blocks were written";
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < kWords; ++i) wrong += words_[i] != expected[i];
    EXPECT_EQ(wrong, 0u);
    pool_->make_absent(words_, kBytes);
    for (uint64_t i = 0; i < kWords; ++i) wrong += words_[i] != expected[i];
    EXPECT_EQ(wrong, 0u);
}

TEST_P(SparseTest, AStreamOverSparseBlocksTakesThemWhole) {
    open(4);
    fill(words_, kBytes, 3);
    pool_->make_absent(words_, kBytes);
    std::vector<uint64_t> expected(kWords);
    for (uint64_t i = 0; i < kWords; ++i) expected[i] = pattern(3, i);
    uint64_t step = 0;
    visit_parts_randomly([&](uint64_t i) {
        if (++step % 4 == 0) words_[i] = expected[i] = step;
    });
    const hanare_counters before = pool_->stats();
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < kWords; ++i) wrong += words_[i] != expected[i];
    EXPECT_EQ(wrong, 0u);
    const hanare_counters after = pool_->stats();
    EXPECT_GT(after.completions, before.completions);
    EXPECT_LT(after.part_reads - before.part_reads, 100u);
}

// The number of pages of a block that follow the one before in physical memory; none where the
// process may not know.
uint64_t physical_neighbours(const std::byte* block) {
    constexpr uint64_t kFrameNumber = (uint64_t{1} << 55) - 1;
    std::array<uint64_t, kBlock / kOsPageBytes> entries{};
    const int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const auto offset = reinterpret_cast<uintptr_t>(block) / kOsPageBytes * sizeof entries[0];
    const ssize_t got = pread(file, entries.data(), sizeof entries, static_cast<off_t>(offset));
    close(file);
    if (got != sizeof entries || (entries[0] & kFrameNumber) == 0) return 0;
    uint64_t count = 0;
    for (size_t i = 1; i < entries.size(); ++i) {
        count += (entries[i] & kFrameNumber) == (entries[i - 1] & kFrameNumber) + 1;
    }
    return count;
}

// Scattered pages make transfers of many segments, which a device may take few of at a time.
TEST_P(SparseTest, FramesThatComeBackArePhysicallyContiguous) {
    if (std::string(GetParam()) == "sigbus-copy") GTEST_SKIP() << "the kernel chooses the pages";
    open();
    fill(words_, kBytes, 1);
    const auto* const last = reinterpret_cast<const std::byte*>(words_) + kBytes - kBlock;
    const uint64_t before = physical_neighbours(last);
    constexpr uint64_t kMost = kBlock / kOsPageBytes * 9 / 10;
    if (before < kMost) GTEST_SKIP() << "no huge pages, or no right to look where pages are";
    visit_parts_randomly([&](uint64_t i) { words_[i] = pattern(1, i); });  // gives frames up
    pool_->make_absent(words_, kBytes);
    must(hanare_advise(pool_->get(), words_, kBytes, HANARE_ADVICE_SEQUENTIAL));
    uint64_t contiguous = 0;
    for (uint64_t block = 0; block < kBlocks; ++block) {
        EXPECT_EQ(words_[block * kBlock / 8], pattern(1, block * kBlock / 8));
        const auto* const address = reinterpret_cast<const std::byte*>(words_) + block * kBlock;
        contiguous += physical_neighbours(address) >= kMost;
    }
    EXPECT_GE(contiguous, kBlocks * 9 / 10);
}

TEST_P(SparseTest, FlushKeepsDirtyPartsResident) {
    open();
    fill(words_, kBytes, 4);
    pool_->make_absent(words_, kBytes);
    must(hanare_advise(pool_->get(), words_, kBytes, HANARE_ADVICE_RANDOM));
    for (uint64_t block = 0; block < 10; ++block) words_[block * kBlock / 8 + 5 * 512] = block;
    EXPECT_EQ(pool_->stats().dirty_bytes, 10 * kPart);
    EXPECT_EQ(pool_->stats().resident_bytes, 10 * kPart);
    const uint64_t written = pool_->stats().written_bytes;
    must(hanare_flush(pool_->get(), words_, kBytes));
    EXPECT_EQ(pool_->stats().dirty_bytes, 0u);
    EXPECT_EQ(pool_->stats().written_bytes - written, 10 * kPart);
    EXPECT_EQ(pool_->stats().resident_bytes, 10 * kPart);
    const uint64_t faults = pool_->stats().read_faults;
    for (uint64_t block = 0; block < 10; ++block) {
        EXPECT_EQ(words_[block * kBlock / 8 + 5 * 512], block);
    }
    EXPECT_EQ(pool_->stats().read_faults, faults);
    words_[5 * 512] = 77;  // clean again, so this is noticed
    EXPECT_EQ(pool_->stats().dirty_bytes, kPart);
    pool_->make_absent(words_, kBytes);
    EXPECT_EQ(words_[5 * 512], 77u);
}

TEST_P(SparseTest, PinsTakeTheWholeBlock) {
    open();
    fill(words_, kBytes, 5);
    pool_->make_absent(words_, kBytes);
    must(hanare_advise(pool_->get(), words_, kBytes, HANARE_ADVICE_RANDOM));
    words_[3 * 512] = 33;
    EXPECT_EQ(pool_->stats().resident_bytes, kPart);
    must(hanare_pin(pool_->get(), words_, kBlock, HANARE_ACCESS_READ));
    EXPECT_EQ(pool_->stats().resident_bytes, kBlock);
    EXPECT_EQ(pool_->stats().completions, 1u);
    for (uint64_t i = 0; i < kBlock / 8; ++i) {
        ASSERT_EQ(words_[i], i == 3 * 512 ? 33 : pattern(5, i));
    }
    must(hanare_unpin(pool_->get(), words_, kBlock));
}

// Threads that read, write, stream and advise at once, each on words of its own in every part.
class SparseStressTest : public SetupTest {};

TEST_P(SparseStressTest, ThreadsOfEveryKindKeepTheirWords) {
    const PoolSetup setup = GetParam();
    const uint64_t bytes = std::max<uint64_t>(64 * setup.block_bytes, 8 * kMiB);
    FarPool pool(setup, 20, bytes, 4);
    uint64_t* const words = pool.alloc_words(bytes);
    const uint64_t count = bytes / sizeof(uint64_t);
    constexpr uint64_t kThreads = 4;
    std::vector<std::vector<uint64_t>> shadows(kThreads, std::vector<uint64_t>(count / kThreads));
    std::atomic<uint64_t> wrong{0};
    std::vector<std::function<void()>> bodies;
    for (uint64_t t = 0; t < kThreads; ++t) {
        bodies.emplace_back([&, t] {
            Prng random(1000 + t);
            auto& shadow = shadows[t];
            const auto check = [&](uint64_t i, bool write) {
                volatile uint64_t* const word = words + i * kThreads + t;
                if (*word != shadow[i]) wrong.fetch_add(1);
                if (write) *word = shadow[i] = random.next();
            };
            for (uint64_t round = 0; round < 6; ++round) {
                for (int k = 0; k < 700; ++k) check(random.below(shadow.size()), k % 3 == 0);
                const uint64_t first = random.below(shadow.size() * 3 / 4);
                const uint64_t steps = shadow.size() / 4;
                for (uint64_t i = 0; i < steps; i += 64) check(first + i, (round + t) % 2 == 0);
                if (t == 0) must(hanare_flush(pool.get(), words, bytes));
                if (t == 1) {
                    must(hanare_advise(pool.get(), words + random.below(count / 2), bytes / 3,
                                       HANARE_ADVICE_DONTNEED));
                }
            }
        });
    }
    run_threads(bodies);
    EXPECT_EQ(wrong.load(), 0u);
    for (uint64_t t = 0; t < kThreads; ++t) {
        for (uint64_t i = 0; i < shadows[t].size(); ++i) {
            wrong += words[i * kThreads + t] != shadows[t][i];
        }
    }
    EXPECT_EQ(wrong.load(), 0u);
    const hanare_counters stats = pool.stats();
    EXPECT_GT(stats.part_reads, 0u);
    EXPECT_LE(stats.frame_bytes + stats.metadata_bytes, stats.budget_bytes);
    EXPECT_EQ(stats.checksum_errors + stats.store_errors, 0u);
}

std::vector<PoolSetup> divided_setups() {
    std::vector<PoolSetup> setups;
    for (const char* engine : {"sigbus-move", "sigbus-copy", "thread"}) {
        for (const uint64_t block_bytes : {32 * kKiB, 256 * kKiB, kMiB}) {
            setups.push_back({engine, block_bytes});
        }
    }
    return setups;
}
INSTANTIATE_TEST_SUITE_P(, SparseStressTest, testing::ValuesIn(divided_setups()), setup_test_name);

}  // namespace

}  // namespace hanare::api_test
