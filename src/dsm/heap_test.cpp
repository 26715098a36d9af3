// SPDX-License-Identifier: Apache-2.0
#include "dsm/heap.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <optional>

#include "base/prng.hpp"
#include "base/units.hpp"

namespace hanare::dsm {
namespace {

TEST(HeapTest, RangesDoNotOverlapAndComeBack) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        uint64_t state = seed;
        constexpr uint64_t kBytes = 4 * kMiB;
        Heap heap(kBytes);
        std::map<uint64_t, uint64_t> used;
        for (int i = 0; i < 2000; ++i) {
            if (!used.empty() && splitmix64(state) % 2 == 0) {
                const auto range = std::next(
                    used.begin(), static_cast<ptrdiff_t>(splitmix64(state) % used.size()));
                EXPECT_TRUE(heap.free(range->first).has_value()) << "seed " << seed;
                used.erase(range);
                continue;
            }
            const uint64_t bytes = 1 + splitmix64(state) % (40 * kKiB);
            const auto offset = heap.allocate(bytes);
            if (!offset) continue;
            EXPECT_EQ(*offset % (bytes < kOsPageBytes ? 64 : kOsPageBytes), 0u);
            EXPECT_LE(*offset + bytes, kBytes);
            const auto next = used.lower_bound(*offset);
            if (next != used.end()) {
                EXPECT_LE(*offset + bytes, next->first) << "seed " << seed;
            }
            if (next != used.begin()) {
                EXPECT_LE(std::prev(next)->first + std::prev(next)->second, *offset);
            }
            used.emplace(*offset, bytes);
        }
        for (const auto& [offset, bytes] : used) heap.free(offset);
        EXPECT_EQ(heap.allocate(kBytes), std::optional<uint64_t>(0)) << "seed " << seed;
    }
}

TEST(HeapTest, KnowsWhatWasAllocated) {
    Heap heap(kMiB);
    EXPECT_FALSE(heap.allocate(kMiB + 1).has_value());
    EXPECT_FALSE(heap.allocate(UINT64_MAX).has_value());
    const auto offset = heap.allocate(100);
    ASSERT_TRUE(offset.has_value());
    EXPECT_FALSE(heap.free(*offset + 64).has_value());
    EXPECT_TRUE(heap.free(*offset).has_value());
    EXPECT_FALSE(heap.free(*offset).has_value());
}

}  // namespace
}  // namespace hanare::dsm
