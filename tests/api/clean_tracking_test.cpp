// SPDX-License-Identifier: Apache-2.0
//
// Writes of one thread while another one brings the block in for reading: what comes between the
// mapping and its protection makes the block dirty, and is not lost with it.
#include <atomic>
#include <thread>

#include "api/far_pool.hpp"
#include "base/prng.hpp"
#include "base/units.hpp"
#include "sys/clock.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = kMiB;  // it takes long to be protected
constexpr int kRounds = 400;

// One write to a word of the block in each round, at a moment of its own while the block is
// fetched.
class Writer {
public:
    explicit Writer(uint64_t* words) : words_(words), thread_([this] { run(); }) {}
    ~Writer() {
        round_.store(-1);
        thread_.join();
    }

    // `fetch_ns`: what a fetch takes, about.
    void begin(int round, uint64_t fetch_ns) {
        fetch_ns_.store(fetch_ns);
        round_.store(round);
    }
    void finish(int round) {
        while (done_.load() != round) std::this_thread::yield();
    }

private:
    void run() {
        Prng random(sys::testing::test_seed());
        for (int last = 0;;) {
            const int round = round_.load();
            if (round < 0) return;
            if (round == last) continue;
            // Without a look at far memory, whose fault would make this thread wait.
            const uint64_t moment = sys::now_ns() + random.below(fetch_ns_.load() + 1);
            while (sys::now_ns() < moment) {
            }
            const uint64_t word = random.below(kBlock / sizeof(uint64_t));
            std::atomic_ref(words_[word]).fetch_add(1, std::memory_order_relaxed);
            done_.store(last = round);
        }
    }

    uint64_t* words_;
    std::atomic<uint64_t> fetch_ns_{0};
    std::atomic<int> round_{0};
    std::atomic<int> done_{0};
    std::thread thread_;
};

class CleanTrackingTest : public EngineTest {};
API_TEST_WITH_ENGINES(CleanTrackingTest);

TEST_P(CleanTrackingTest, AWriteWhileItsBlockIsMappedForReadingIsKept) {
    FarPool pool({GetParam(), kBlock}, kFramesMin, kBlock);
    uint64_t* const words = pool.alloc_words(kBlock);
    words[0] = 1;  // so that it is in the store, and read from there
    Writer writer(words);
    int lost = 0;
    uint64_t fetch_ns = 0;
    for (int round = 1; round <= kRounds && lost == 0; ++round) {
        pool.make_absent(words, kBlock);
        const uint64_t start = sys::now_ns();
        writer.begin(round, fetch_ns);
        std::atomic_ref(words[0]).load(std::memory_order_relaxed);
        fetch_ns = (3 * fetch_ns + sys::now_ns() - start) / 4;
        writer.finish(round);
        pool.make_absent(words, kBlock);
        uint64_t sum = 0;
        for (uint64_t i = 0; i < kBlock / sizeof(uint64_t); ++i) sum += words[i];
        lost += sum != 1 + static_cast<uint64_t>(round);
    }
    EXPECT_EQ(lost, 0);
}

// Two threads, so that blocks are compared where that is the way to find such writes.
TEST_P(CleanTrackingTest, ReadingBySeveralThreadsNeverWritesBack) {
    constexpr uint64_t kSmall = 64 * kKiB;
    constexpr uint64_t kBytes = 4 * kFramesMin * kSmall;
    FarPool pool({GetParam(), kSmall}, kFramesMin, kBytes, 4);
    uint64_t* const words = pool.alloc_words(kBytes);
    fill(words, kBytes, 7);
    must(hanare_flush(pool.get(), nullptr, 0));
    const hanare_counters before = pool.stats();
    std::atomic<uint64_t> wrong = 0;
    {
        std::jthread other([&] { wrong += mismatches(words, kBytes, 7); });
        for (int pass = 0; pass < 2; ++pass) wrong += mismatches(words, kBytes, 7);
    }
    const hanare_counters after = pool.stats();
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(after.write_backs, before.write_backs);
    EXPECT_EQ(after.dirty_bytes, 0u);
    EXPECT_GT(after.read_bytes, before.read_bytes);
}

}  // namespace

}  // namespace hanare::api_test
