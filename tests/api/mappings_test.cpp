// SPDX-License-Identifier: Apache-2.0
//
// vm.max_map_count and engine segv-remap, which spends mappings on mapped blocks.  The scenarios
// use up the mappings of their process themselves; the setting is left alone.
#include <cerrno>
#include <fstream>
#include <string>
#include <sys/mman.h>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"
#include "base/prng.hpp"
#include "base/sanitizers.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 4 * kKiB;

uint64_t mapping_count() {
    std::ifstream maps("/proc/self/maps");
    uint64_t count = 0;
    for (std::string line; std::getline(maps, line);) ++count;
    return count;
}

uint64_t mapping_count_max() {
    uint64_t count = 0;
    std::ifstream("/proc/sys/vm/max_map_count") >> count;
    return count;
}

// Mappings for nothing: every second page of a range has other rights.
class Eater {
public:
    Eater()
        : pages_(
              static_cast<std::byte*>(mmap(nullptr, kPages * kOsPageBytes, PROT_NONE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}
    Eater(const Eater&) = delete;
    Eater& operator=(const Eater&) = delete;
    ~Eater() { munmap(pages_, kPages * kOsPageBytes); }

    // Until the kernel refuses, or so many are taken.
    void eat(uint64_t mappings) {
        for (; mappings >= 2 && next_ < kPages; next_ += 2, mappings -= 2) {
            if (mprotect(pages_ + next_ * kOsPageBytes, kOsPageBytes, PROT_READ) != 0) return;
        }
    }

private:
    static constexpr uint64_t kPages = uint64_t{1} << 22;
    std::byte* pages_;
    uint64_t next_ = 1;
};

API_TEST_SCENARIO(mappings_run_out) {
    constexpr uint64_t kBlocks = 2048;
    constexpr uint64_t kBytes = kBlocks * kBlock;
    const bool fits = arguments[0] == "fits";
    FarPool pool({"segv-remap", kBlock}, fits ? kBlocks : kBlocks / 2, kBytes, 8);
    std::byte* const region = pool.alloc(kBytes);
    for (uint64_t i = 0; i < kBlocks; i += 16) poke(region, kBlock, i, 1);
    Eater eater;
    eater.eat(UINT64_MAX);
    SCENARIO_CHECK(mapping_count() >= mapping_count_max() - 1);
    std::vector<uint64_t> shadow(kBlocks, 0);
    for (uint64_t i = 0; i < kBlocks; i += 16) shadow[i] = 1;
    Prng random(7);
    for (int step = 0; step < 20'000; ++step) {
        const uint64_t i = random.below(kBlocks);
        SCENARIO_CHECK(touch(region, kBlock, i) == shadow[i]);
        if (random.below(2) == 0) poke(region, kBlock, i, shadow[i] = random.next());
    }
    for (uint64_t i = 0; i < kBlocks; ++i) SCENARIO_CHECK(touch(region, kBlock, i) == shadow[i]);
    // Not for lack of frames.
    if (fits) SCENARIO_CHECK(pool.stats().evictions_inline > 0);
    return 0;
}

TEST(MappingsTest, ABlockIsEvictedWhereNoMappingIsLeft) {
#if defined(HANARE_ASAN) || defined(HANARE_TSAN)
    GTEST_SKIP() << "the sanitizer's own allocator needs mappings";
#endif
    for (const char* budget : {"fits", "small"}) {
        const Outcome outcome = run_scenario("mappings_run_out", {budget});
        EXPECT_TRUE(outcome.exited_with(0)) << budget << ": " << outcome.describe();
    }
}

API_TEST_SCENARIO(blocks_are_raised) {
    const uint64_t usable = mapping_count_max() / 8 * 7;
    const uint64_t bytes = usable / 4 * kBlock;  // half of the mappings
    FarPool one({"segv-remap", kBlock}, bytes / kBlock, bytes);
    FarPool two({"segv-remap", kBlock}, bytes / kBlock, bytes);
    std::byte* const first = one.alloc(bytes);
    SCENARIO_CHECK(one.stats(first).block_bytes == kBlock);
    Eater eater;
    eater.eat(usable / 4);
    std::byte* const second = two.alloc(bytes);
    SCENARIO_CHECK(two.stats(second).block_bytes == 4 * kBlock);
    for (uint64_t i = 0; i < bytes; i += kBlock) {
        second[i] = std::byte{1};
        first[i] = std::byte{1};
    }
    SCENARIO_CHECK(mapping_count() < mapping_count_max());
    must(hanare_free(one.get(), first));
    SCENARIO_CHECK(two.stats(two.alloc(bytes / 4)).block_bytes == kBlock);
    return 0;
}

TEST(MappingsTest, BlocksAreLargeEnoughForTheLimit) {
    const Outcome outcome = run_scenario("blocks_are_raised");
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    ASSERT_EQ(outcome.lines().size(), 1u) << outcome.errors;
    EXPECT_NE(outcome.errors.find("has blocks of 16 KiB instead of 4 KiB: engine segv-remap needs "
                                  "2 mappings per block, and vm.max_map_count allows too few"),
              std::string::npos)
        << outcome.errors;
}

API_TEST_SCENARIO(no_block_is_large_enough) {
    FarPool pool({"segv-remap", kBlock}, 1024, 4 * kMiB);
    Eater eater;
    eater.eat(mapping_count_max() / 8 * 7);
    void* address = nullptr;
    SCENARIO_CHECK(fails_with(HANARE_STATUS_LIMIT, {"vm.max_map_count", "blocks of 4 MiB"},
                              hanare_alloc(pool.get(), 4 * kMiB, nullptr, &address)));
    return 0;
}

TEST(MappingsTest, ARegionThatCannotFitIsRefused) {
    const Outcome outcome = run_scenario("no_block_is_large_enough");
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

}  // namespace

}  // namespace hanare::api_test
