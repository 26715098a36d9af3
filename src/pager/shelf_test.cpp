// SPDX-License-Identifier: Apache-2.0
//
// Parts of adopted memory that go to the shelf and come back, while the kernel refuses some of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/prng.hpp"
#include "base/units.hpp"
#include "pager/fault/block.hpp"
#include "pager/fault/region.hpp"
#include "pager/pool.hpp"
#include "pager/test_pool.hpp"
#include "sys/inject.hpp"
#include "sys/test_support.hpp"

namespace hanare::pager {
namespace {

constexpr uint64_t kBlockBytes = 64 * kKiB;
constexpr uint64_t kBytes = 24 * kMiB;
constexpr uint64_t kLocalBytes = 6 * kMiB;
constexpr uint64_t kPages = kBytes / kOsPageBytes;
constexpr uint64_t kPageWords = kOsPageBytes / sizeof(uint64_t);

// Adopted memory is never freed, and neither is its pool.
Region* adopt() {
    Pool* const pool = open_test_pool(kLocalBytes, kBlockBytes).release();
    if (pool == nullptr) return nullptr;
    auto range = sys::Mapping::reserve(kBytes, kBlockBytes);
    if (!range || !pool->prepare_to_adopt()) return nullptr;
    const auto adopted = pool->adopt(std::move(*range));
    if (!adopted) return nullptr;
    pool->set_access(**adopted, 0, kBytes / kBlockBytes, block_access::kUsable);
    return *adopted;
}

// A thread's words: one in each page.
class Words {
public:
    Words(const Region& region, uint64_t number)
        : words_(reinterpret_cast<uint64_t*>(region.begin()) + number), shadow_(kPages, 0) {}

    void use(uint64_t page, Prng& random) {
        std::atomic_ref word(words_[page * kPageWords]);
        wrong += word.load(std::memory_order_relaxed) != shadow_[page];
        if (random.below(3) == 0) word.store(shadow_[page] = random.next());
    }

    uint64_t wrong = 0;

private:
    uint64_t* words_;
    std::vector<uint64_t> shadow_;
};

// Pages at random, more often those of a slowly moving eighth, alone and in runs.
void wander(Words& words, uint64_t seed, int steps, bool refuses) {
    Prng random(seed);
    for (int step = 0; step < steps; ++step) {
        const uint64_t hot = (static_cast<uint64_t>(step) / 8 + random.below(kPages / 8)) % kPages;
        const uint64_t first = random.below(2) == 0 ? hot : random.below(kPages);
        const uint64_t run = random.below(8) == 0 ? 1 + random.below(12) : 1;
        if (refuses && random.below(4) == 0) {
            sys::inject::arm(sys::inject::Call::kFill, ENOMEM, random.below(8), 1);
        }
        for (uint64_t i = first; i < std::min(first + run, kPages); ++i) words.use(i, random);
    }
    for (uint64_t page = 0; page < kPages; ++page) words.use(page, random);
}

class ShelfTest : public testing::TestWithParam<bool> {};

TEST_P(ShelfTest, NothingIsLost) {
    static Region* const region = adopt();
    ASSERT_NE(region, nullptr);
    if (!region->has_shelf()) GTEST_SKIP() << "needs an engine that moves pages (Linux 6.8)";
    constexpr uint64_t kThreads = 3;
    constexpr int kSteps = 12'000;
    const uint64_t seed = sys::testing::test_seed();
    // The tests use words of their own.
    const uint64_t first_word = GetParam() ? kThreads : 0;
    const uint64_t returns = region->counters.staged_hits.load();
    std::vector<std::unique_ptr<Words>> words;
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < kThreads; ++i) {
        words.push_back(std::make_unique<Words>(*region, first_word + i));
        threads.emplace_back(wander, std::ref(*words.back()), seed + i, kSteps, GetParam());
    }
    for (std::thread& thread : threads) thread.join();
    sys::inject::disarm_all();
    for (const auto& of_thread : words) EXPECT_EQ(of_thread->wrong, 0u);
    EXPECT_GT(region->counters.staged_hits.load() - returns, 1000u);
    EXPECT_GT(region->counters.part_reads.load(), 1000u);
}
INSTANTIATE_TEST_SUITE_P(RefusingOrNot, ShelfTest, testing::Bool());

}  // namespace
}  // namespace hanare::pager
