// SPDX-License-Identifier: Apache-2.0
//
// What a pool costs: resident memory within the budget, and nothing left when it is closed.
#include <algorithm>
#include <dirent.h>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"
#include "base/prng.hpp"

namespace hanare::api_test {

namespace {

bool reset_peak() {
    std::ofstream file("/proc/self/clear_refs");
    file << "5" << std::flush;
    return file.good();
}

void use_heavily(FarPool& pool, const PoolSetup& setup, uint64_t region_bytes) {
    uint64_t* const words = pool.alloc_words(region_bytes);
    const uint64_t block_words = setup.block_bytes / sizeof(uint64_t);
    const uint64_t blocks = region_bytes / setup.block_bytes;
    fill(words, region_bytes, 1);
    std::vector<std::function<void()>> bodies;
    for (uint64_t thread = 0; thread < 4; ++thread) {
        bodies.push_back([=] {
            Prng random(thread);
            for (uint64_t i = 0; i < blocks / 4; ++i) {
                const uint64_t block = random.below(blocks);
                words[block * block_words + 8 + thread] = i;
                static_cast<void>(
                    *const_cast<volatile uint64_t*>(&words[random.below(blocks) * block_words]));
            }
        });
    }
    run_threads(bodies);
}

// In a process of its own, so that the peak is the pool's.
API_TEST_SCENARIO(footprint) {
    const PoolSetup setup = {arguments[0].c_str(), std::stoull(arguments[1])};
    const uint64_t frames = std::max<uint64_t>(24 * kMiB / setup.block_bytes, kFramesMin + 2);
    const uint64_t region_bytes = 2 * frames * setup.block_bytes;
    {
        FarPool warm_up(setup, kFramesMin, setup.block_bytes * 8);
        use_heavily(warm_up, setup, setup.block_bytes * 8);
    }
    SCENARIO_CHECK(reset_peak());
    const uint64_t before = status_bytes("VmRSS");
    FarPool pool(setup, frames, region_bytes, 16);
    use_heavily(pool, setup, region_bytes);
    const uint64_t budget = pool.stats().budget_bytes;
    const uint64_t growth = status_bytes("VmHWM") - before;
    const uint64_t allowed = budget + budget / 20 + 16 * kMiB;
    std::fprintf(stderr, "grew by %llu MiB, budget %llu MiB, allowed %llu MiB\n",
                 static_cast<unsigned long long>(growth / kMiB),
                 static_cast<unsigned long long>(budget / kMiB),
                 static_cast<unsigned long long>(allowed / kMiB));
    SCENARIO_CHECK(growth <= allowed);
    SCENARIO_CHECK(growth >= budget / 2);  // else nothing was measured
    return 0;
}

class FootprintTest : public EngineTest {};
API_TEST_WITH_ENGINES(FootprintTest);

TEST_P(FootprintTest, ResidentMemoryStaysWithinTheBudget) {
#if defined(HANARE_ASAN) || defined(HANARE_TSAN)
    GTEST_SKIP() << "the sanitizer's own memory would be measured";
#endif
    for (const uint64_t block_bytes :
         {4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB, kMiB, 4 * kMiB}) {
        const Outcome outcome =
            run_scenario("footprint", {GetParam(), std::to_string(block_bytes)});
        EXPECT_TRUE(outcome.exited_with(0)) << block_bytes / kKiB << "K: " << outcome.describe();
    }
}

// Opening a pool and using little of it costs little, however large it may grow.
API_TEST_SCENARIO(start) {
    constexpr uint64_t kBudget = 512 * kMiB;
    SCENARIO_CHECK(reset_peak());
    const uint64_t before = status_bytes("VmRSS");
    const sys::testing::TemporaryDirectory directory;
    PoolConfig config;
    config.engine = arguments[0];
    config.store = "file:" + directory.path();
    config.options.local_bytes = kBudget;
    FarPool pool(config);
    uint64_t* const words = pool.alloc_words(2 * kBudget);
    words[0] = 1;
    must(hanare_flush(pool.get(), words, 2 * kBudget));  // the keeper has had its turn
    const uint64_t growth = status_bytes("VmHWM") - before;
    std::fprintf(stderr, "grew by %llu MiB\n", static_cast<unsigned long long>(growth / kMiB));
    SCENARIO_CHECK(growth <= 16 * kMiB);
    return 0;
}

TEST_P(FootprintTest, StartNeedsLittleMemory) {
#if defined(HANARE_ASAN) || defined(HANARE_TSAN)
    GTEST_SKIP() << "the sanitizer's own memory would be measured";
#endif
    const Outcome outcome = run_scenario("start", {GetParam()});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

size_t entries_of(const char* path) {
    DIR* const directory = opendir(path);
    size_t count = 0;
    while (readdir(directory) != nullptr) ++count;
    closedir(directory);
    return count;
}

size_t mapping_count() {
    std::ifstream maps("/proc/self/maps");
    size_t count = 0;
    for (std::string line; std::getline(maps, line);) ++count;
    return count;
}

struct Census {
    size_t descriptors = entries_of("/proc/self/fd");
    size_t threads = entries_of("/proc/self/task");
    size_t mappings = mapping_count();
};

void open_use_close(const PoolSetup& setup) {
    constexpr uint64_t kBlocks = 40;
    FarPool pool(setup, kFramesMin, 3 * kBlocks * setup.block_bytes, 4);
    std::byte* const freed = pool.alloc(kBlocks * setup.block_bytes);
    std::byte* const kept = pool.alloc(kBlocks * setup.block_bytes, 4 * kKiB);
    for (uint64_t i = 0; i < kBlocks; ++i) poke(freed, setup.block_bytes, i, i);
    for (uint64_t i = 0; i < kBlocks; ++i) poke(kept, setup.block_bytes, i, i);
    must(hanare_free(pool.get(), freed));
}

API_TEST_SCENARIO(nothing_left) {
    const PoolSetup setup = {arguments[0].c_str(), 16 * kKiB};
    for (int i = 0; i < 3; ++i) open_use_close(setup);  // libc keeps a thread's stack, for instance
    const Census before;
    for (int i = 0; i < 20; ++i) {
        open_use_close(setup);
        // A thread that was joined may take a moment to leave the list.
        SCENARIO_CHECK(eventually([&] { return Census().threads == before.threads; }));
        const Census after;
        SCENARIO_CHECK(after.descriptors == before.descriptors);
#if !defined(HANARE_ASAN) && !defined(HANARE_TSAN)  // the sanitizer maps memory of its own
        SCENARIO_CHECK(after.mappings == before.mappings);
#endif
    }
    return 0;
}

TEST_P(FootprintTest, NothingIsLeftWhenAPoolIsClosed) {
    const Outcome outcome = run_scenario("nothing_left", {GetParam()});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

}  // namespace

}  // namespace hanare::api_test
