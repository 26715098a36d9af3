// SPDX-License-Identifier: Apache-2.0
#include "store/extents.hpp"

#include <gtest/gtest.h>
#include <map>
#include <vector>

#include "base/units.hpp"
#include "sys/test_support.hpp"

namespace hanare::store {
namespace {

constexpr uint64_t kUnit = ExtentAllocator::kAlignmentBytes;

TEST(Extents, FirstFitReusesTheLowestHole) {
    ExtentAllocator extents(16 * kUnit);
    const auto a = extents.reserve(2 * kUnit);
    const auto b = extents.reserve(kUnit);
    const auto c = extents.reserve(3 * kUnit);
    ASSERT_TRUE(a && b && c);
    EXPECT_EQ(*a, 0u);
    EXPECT_EQ(*b, 2 * kUnit);
    EXPECT_EQ(*c, 3 * kUnit);
    extents.release(*a, 2 * kUnit);
    EXPECT_EQ(extents.reserve(3 * kUnit), 6 * kUnit) << "the hole is too small";
    EXPECT_EQ(extents.reserve(kUnit), 0u);
}

TEST(Extents, NeighboursAreJoinedFromEitherSide) {
    ExtentAllocator extents(4 * kUnit);
    for (uint64_t i = 0; i < 4; ++i) ASSERT_EQ(extents.reserve(kUnit), i * kUnit);
    EXPECT_EQ(extents.free_extents(), 0u);
    extents.release(0, kUnit);
    extents.release(2 * kUnit, kUnit);
    EXPECT_EQ(extents.free_extents(), 2u);
    extents.release(kUnit, kUnit);  // joins both
    EXPECT_EQ(extents.free_extents(), 1u);
    EXPECT_EQ(extents.largest_bytes(), 3 * kUnit);
    extents.release(3 * kUnit, kUnit);
    EXPECT_EQ(extents.reserve(4 * kUnit), 0u);
}

TEST(Extents, GivesOutTheLastByteAndNoMore) {
    ExtentAllocator extents(kUnit + kOsPageBytes);
    EXPECT_FALSE(extents.reserve(kUnit + 2 * kOsPageBytes));
    EXPECT_EQ(extents.largest_bytes(), kUnit + kOsPageBytes);
    EXPECT_EQ(extents.reserve(kUnit), 0u);
    EXPECT_EQ(extents.reserve(kOsPageBytes), kUnit);
    EXPECT_FALSE(extents.reserve(kOsPageBytes));
    EXPECT_EQ(extents.largest_bytes(), 0u);
}

TEST(Extents, ManagesAlmostTheWholeRangeOfOffsets) {
    constexpr uint64_t kSize = uint64_t{INT64_MAX} + 1 - kUnit;
    ExtentAllocator extents(kSize);
    EXPECT_EQ(extents.reserve(kOsPageBytes), 0u);
    EXPECT_FALSE(extents.reserve(kSize));
    EXPECT_EQ(extents.reserve(kSize - kUnit), kUnit);
}

// Against a model: which pages are reserved, and by the definition of first fit where the next
// extent must be.
class ExtentsModel {
public:
    explicit ExtentsModel(uint64_t size_bytes) : size_bytes_(size_bytes) {}

    std::optional<uint64_t> first_fit(uint64_t bytes) const {
        for (uint64_t offset = 0; offset + bytes <= size_bytes_; offset += kUnit) {
            if (is_free(offset, bytes)) return offset;
        }
        return std::nullopt;
    }
    void reserve(uint64_t offset, uint64_t bytes) { reserved_[offset] = bytes; }
    void release(uint64_t offset) { reserved_.erase(offset); }
    const std::map<uint64_t, uint64_t>& reserved() const { return reserved_; }

    // Maximal runs of free bytes.
    size_t hole_count() const {
        size_t holes = 0;
        uint64_t end = 0;
        for (const auto& [offset, bytes] : reserved_) {
            if (offset > end) ++holes;
            end = offset + bytes;
        }
        return holes + (end < size_bytes_ ? 1 : 0);
    }

private:
    bool is_free(uint64_t offset, uint64_t bytes) const {
        for (const auto& [other, other_bytes] : reserved_) {
            if (offset < other + other_bytes && other < offset + bytes) return false;
        }
        return true;
    }

    uint64_t size_bytes_;
    std::map<uint64_t, uint64_t> reserved_;
};

TEST(Extents, AgreeWithTheModel) {
    Prng prng(sys::testing::test_seed());
    for (int life = 0; life < 20; ++life) {
        const uint64_t size_bytes = 40 * kUnit + prng.below(1024) * kOsPageBytes;
        ExtentAllocator extents(size_bytes);
        ExtentsModel model(size_bytes);
        for (int step = 0; step < 1000; ++step) {
            if (prng.below(100) < 55) {
                const uint64_t bytes = (1 + prng.below(5 * kUnit / kOsPageBytes)) * kOsPageBytes;
                const auto expected = model.first_fit(bytes);
                ASSERT_EQ(extents.reserve(bytes), expected);
                if (expected) model.reserve(*expected, bytes);
            } else if (!model.reserved().empty()) {
                auto victim = model.reserved().begin();
                std::advance(victim, static_cast<long>(prng.below(model.reserved().size())));
                const auto [offset, bytes] = *victim;
                extents.release(offset, bytes);
                model.release(offset);
            }
            ASSERT_EQ(extents.free_extents(), model.hole_count()) << "neighbours were not joined";
        }
        while (!model.reserved().empty()) {
            const auto [offset, bytes] = *model.reserved().begin();
            extents.release(offset, bytes);
            model.release(offset);
        }
        ASSERT_EQ(extents.reserve(size_bytes), 0u) << "something was lost";
    }
}

TEST(ExtentsDeathTest, ReleasingTwiceIsFound) {
    EXPECT_DEATH(
        {
            ExtentAllocator extents(4 * kUnit);
            extents.reserve(kUnit);
            extents.reserve(kUnit);
            extents.release(0, kUnit);
            extents.release(0, kUnit);
        },
        "internal error");
}

}  // namespace
}  // namespace hanare::store
