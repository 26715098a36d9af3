// SPDX-License-Identifier: Apache-2.0
//
// What the tables take for each block (base/bookkeeping.hpp): as computed, and as the kernel gives
// it to a region of 1 TiB of which little is used.
#include "base/bookkeeping.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "pager/fault/block.hpp"
#include "pager/fault/region.hpp"
#include "pager/pool.hpp"
#include "pager/test_pool.hpp"

namespace hanare::pager {
namespace {

static_assert(sizeof(Block) == kBlockEntryBytes + kBlockMapBytes);

constexpr uint64_t kTiB = 1024 * kGiB;

hanare_counters stats_of(Pool& pool) {
    hanare_counters counters = {};
    EXPECT_TRUE(pool.stats(nullptr, counters));
    return counters;
}

// Pages of [begin, begin + bytes) that are in memory.
uint64_t present_bytes(const void* begin, uint64_t bytes) {
    std::vector<unsigned char> pages((bytes + kOsPageBytes - 1) / kOsPageBytes);
    EXPECT_EQ(mincore(const_cast<void*>(begin), bytes, pages.data()), 0);
    uint64_t present = 0;
    for (const unsigned char page : pages) present += (page & 1u) * kOsPageBytes;
    return present;
}

// What this process has of memory that it shares: the store's table of slots.
uint64_t shared_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("RssShmem:")) return std::stoull(line.substr(9)) * kKiB;
    }
    ADD_FAILURE() << "no RssShmem";
    return 0;
}

TEST(Bookkeeping, OfARegionIsWhatItsTablesAreChargedFor) {
    const auto pool = open_test_pool(64 * kMiB, 64 * kKiB);
    ASSERT_NE(pool, nullptr);
    constexpr uint64_t kBytes = 256 * kMiB;
    const uint64_t before = stats_of(*pool).metadata_bytes;
    ASSERT_TRUE(pool->alloc(kBytes, 0));
    const uint64_t charged = stats_of(*pool).metadata_bytes - before;
    constexpr uint64_t kBlocks = kBytes / (64 * kKiB);
    const uint64_t parts = (charged / kBlocks - sizeof(Block)) / kPartChecksumBytes;
    EXPECT_EQ(charged, kBlocks * (kBlockEntryBytes + kBlockMapBytes + parts * kPartChecksumBytes));
    EXPECT_TRUE(parts == 1 || parts == 64 * kKiB / kOsPageBytes) << parts;
    EXPECT_LE(kBlockEntryBytes, kBookkeepingMax);
}

// The blocks are DLM's, of 1 MiB.  Of those that are used each lies on another page of the table of
// blocks, so that all of that is there: what is measured is as much as there can be.
TEST(Bookkeeping, OfASparseTebibyteIs32BytesForEachBlock) {
    constexpr uint64_t kBlockBytes = kMiB;
    constexpr uint64_t kBlocks = kTiB / kBlockBytes;
    constexpr uint64_t kStride = kOsPageBytes / sizeof(Block);
    constexpr uint64_t kUsed = kBlocks / kStride;
    // Adopted memory is never freed, and neither is its pool.
    constexpr uint64_t kBudget = 320 * kMiB;
    static Pool* const pool = open_test_pool(kBudget, kBlockBytes).release();
    ASSERT_NE(pool, nullptr);
    auto range = sys::Mapping::reserve(kTiB, kBlockBytes);
    if (!range) GTEST_SKIP() << "no addresses: " << range.error().text;
    auto* const begin = reinterpret_cast<uint64_t*>(range->address());
    const uint64_t shared_before = shared_bytes();
    ASSERT_TRUE(pool->prepare_to_adopt());
    const auto adopted = pool->adopt(std::move(*range));
    ASSERT_TRUE(adopted) << adopted.error().text;
    Region& region = **adopted;
    const uint64_t charged_before = stats_of(*pool).metadata_bytes;
    EXPECT_LT(present_bytes(region.table.address(), region.table.bytes()), kMiB);
    constexpr uint32_t kFew = 1000;
    pool->set_access(region, 0, kFew, block_access::kUsable);
    EXPECT_EQ(stats_of(*pool).metadata_bytes - charged_before,
              kFew * (kBlockEntryBytes + kBlockMapBytes + kAdoptedBlockBytes +
                      region.parts_per_block * kPartChecksumBytes));
    // Most of it will not be used.
    pool->set_access(region, kFew, kBlocks, block_access::kUsable);
    EXPECT_EQ(stats_of(*pool).metadata_bytes - charged_before, kBudget / 4);

    const auto word = [&](uint64_t i) -> volatile uint64_t& {
        return begin[i * kStride * kBlockBytes / sizeof(uint64_t)];
    };
    for (uint64_t i = 0; i < kUsed; ++i) word(i) = i + 1;
    ASSERT_TRUE(pool->flush(nullptr, 0));
    for (uint64_t i = 0; i < kUsed; ++i) ASSERT_EQ(word(i), i + 1);

    // Of an entry half is the map.
    const uint64_t blocks = present_bytes(region.table.address(), kBlocks * sizeof(Block));
    const uint64_t checksums = present_bytes(region.table.address() + kBlocks * sizeof(Block),
                                             region.table.bytes() - kBlocks * sizeof(Block));
    const uint64_t places =
        present_bytes(region.access_table.address(), region.access_table.bytes()) +
        present_bytes(region.slot_table.address(), region.slot_table.bytes());
    const uint64_t slots = shared_bytes() - shared_before;
    std::printf(
        "1 TiB of 1 MiB blocks, %llu used: blocks %llu KiB, places %llu KiB, slots %llu KiB; "
        "checksums %llu KiB\n",
        static_cast<unsigned long long>(kUsed), static_cast<unsigned long long>(blocks / kKiB),
        static_cast<unsigned long long>(places / kKiB),
        static_cast<unsigned long long>(slots / kKiB),
        static_cast<unsigned long long>(checksums / kKiB));
    EXPECT_EQ(blocks, kBlocks * sizeof(Block));
    EXPECT_EQ(places, kBlocks * kAdoptedBlockBytes);
    EXPECT_GE(slots, kUsed * kStoredSlotBytes);
    EXPECT_LE(blocks - kBlocks * kBlockMapBytes + places + slots, kBlocks * kBookkeepingMax);
}

}  // namespace
}  // namespace hanare::pager
