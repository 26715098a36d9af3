// SPDX-License-Identifier: Apache-2.0
#include "sys/sparse_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/prng.hpp"
#include "base/sanitizers.hpp"
#include "base/units.hpp"
#include "sys/process_usage.hpp"
#include "sys/test_support.hpp"

namespace hanare::sys {
namespace {

size_t present_pages(const SparseMemory& memory) {
    std::vector<unsigned char> pages(memory.bytes() / kOsPageBytes);
    EXPECT_EQ(mincore(memory.address(), memory.bytes(), pages.data()), 0);
    return static_cast<size_t>(
        std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; }));
}

TEST(SparseMemory, TakesMemoryWhereItIsWrittenTo) {
#if defined(HANARE_TSAN)
    GTEST_SKIP() << "ThreadSanitizer has memory of its own for what is touched";
#endif
    const SparseMemory memory = SparseMemory::reserve(64 * kGiB).value();
    const uint64_t before = own_memory().anonymous_bytes;
    for (uint64_t i = 0; i < 256; ++i) memory.address()[i * 256 * kMiB] = std::byte{1};
    const uint64_t after = own_memory().anonymous_bytes;
    EXPECT_GE(after - before, 256 * kOsPageBytes);
    EXPECT_LE(after - before, 512 * kOsPageBytes);
}

TEST(SparseMemory, LooksAreNotWrites) {
    const SparseMemory memory = SparseMemory::reserve(kMiB).value();
    memory.clear(memory.address() + 5, 100);
    memory.clear(memory.address() + 5000, 2 * kOsPageBytes);
    const uint64_t before = own_memory().anonymous_bytes;
    for (size_t at = 0; at < kMiB; at += 64) {
        memory.clear(memory.address() + at, 64);
    }
    // What a sanitizer or the test itself needs is less.
    EXPECT_LT(own_memory().anonymous_bytes, before + kMiB / 2);
}

TEST(SparseMemory, ClearsWhatItIsTold) {
    const SparseMemory memory = SparseMemory::reserve(8 * kOsPageBytes).value();
    Prng prng(testing::test_seed());
    for (int round = 0; round < 500; ++round) {
        std::memset(memory.address(), 0x55, memory.bytes());
        const size_t first = prng.below(memory.bytes() + 1);
        const size_t bytes = prng.below(memory.bytes() - first + 1);
        memory.clear(memory.address() + first, bytes);
        for (size_t at = 0; at < memory.bytes(); ++at) {
            const bool cleared = at >= first && at - first < bytes;
            ASSERT_EQ(memory.address()[at], cleared ? std::byte{0} : std::byte{0x55})
                << at << ", cleared " << first << " + " << bytes;
        }
    }
}

TEST(SparseMemory, GivesWholePagesBack) {
    const SparseMemory memory = SparseMemory::reserve(8 * kOsPageBytes).value();
    std::memset(memory.address(), 1, memory.bytes());
    EXPECT_EQ(present_pages(memory), 8u);
    memory.clear(memory.address() + 1, 4 * kOsPageBytes);
    EXPECT_EQ(present_pages(memory), 5u);
}

TEST(SparseMemory, LockedPagesAreClearedToo) {
    const SparseMemory memory = SparseMemory::reserve(4 * kOsPageBytes).value();
    if (mlock(memory.address(), memory.bytes()) != 0) {
        GTEST_SKIP() << "mlock is refused: " << strerror(errno);
    }
    std::memset(memory.address(), 1, memory.bytes());
    memory.clear(memory.address(), memory.bytes());
    EXPECT_TRUE(std::all_of(memory.address(), memory.address() + memory.bytes(),
                            [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(SparseMemory, ChildrenHaveTheirOwn) {
    const SparseMemory memory = SparseMemory::reserve(kOsPageBytes).value();
    memory.address()[0] = std::byte{1};
    EXPECT_EQ(testing::run_in_child([&]() -> std::string {
                  if (memory.address()[0] != std::byte{1}) return "not inherited";
                  memory.address()[0] = std::byte{2};
                  return "";
              }),
              "");
    EXPECT_EQ(memory.address()[0], std::byte{1});
}

}  // namespace
}  // namespace hanare::sys
