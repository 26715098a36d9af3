// SPDX-License-Identifier: Apache-2.0
#include "pager/mapping_budget.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/units.hpp"
#include "sys/mappings.hpp"

namespace hanare::pager {
namespace {

constexpr uint64_t kTiB = 1024 * kGiB;

TEST(MappedBlocksMax, IsTheBudgetOrTheRegion) {
    EXPECT_EQ(mapped_blocks_max({}, kGiB), 0u);
    EXPECT_EQ(mapped_blocks_max(std::vector<BlockExtent>{{4 * kKiB, 100}}, kGiB), 100u);
    EXPECT_EQ(mapped_blocks_max(std::vector<BlockExtent>{{4 * kKiB, 1000}}, kMiB), 256u);
}

TEST(MappedBlocksMax, FillsTheBudgetWithTheSmallestFirst) {
    const std::vector<BlockExtent> regions = {{kMiB, 100}, {4 * kKiB, 128}, {64 * kKiB, 1000}};
    // Half a MiB of 4 KiB, then 64 KiB for the rest.
    EXPECT_EQ(mapped_blocks_max(regions, 2 * kMiB), 128u + 24u);
}

class MappingBudgetTest : public testing::Test {
protected:
    const uint64_t blocks_ = mappings_for_pools().value() / 2;
};

TEST_F(MappingBudgetTest, ChoosesTheSmallestBlocksThatFit) {
    const MappingBudget budget(2, 100 * kGiB);
    EXPECT_EQ(budget.choose_block_bytes({}, (blocks_ - 1000) * 4 * kKiB, 4 * kKiB), 4 * kKiB);
    EXPECT_EQ(budget.choose_block_bytes({}, (blocks_ + 1000) * 4 * kKiB, 4 * kKiB), 8 * kKiB);
    EXPECT_EQ(budget.choose_block_bytes({}, blocks_ * 60 * kKiB, 4 * kKiB), 64 * kKiB);
    EXPECT_EQ(budget.choose_block_bytes({}, blocks_ * 60 * kKiB, kMiB), kMiB);
}

TEST_F(MappingBudgetTest, CountsOnlyWhatTheBudgetHolds) {
    const MappingBudget budget(2, 64 * kMiB);
    EXPECT_EQ(budget.choose_block_bytes({}, 16 * kTiB, 4 * kKiB), 4 * kKiB);
    const std::vector<BlockExtent> others(100, {4 * kKiB, uint64_t{1} << 30});
    EXPECT_EQ(budget.choose_block_bytes(others, 16 * kTiB, 4 * kKiB), 4 * kKiB);
}

TEST_F(MappingBudgetTest, CountsOtherPools) {
    const MappingBudget budget(2, 100 * kGiB);
    const uint64_t bytes = blocks_ * 3 / 4 * 4 * kKiB;
    {
        MappingBudget other(2, 100 * kGiB);
        other.account_for(std::vector<BlockExtent>{{4 * kKiB, blocks_ / 2}});
        EXPECT_EQ(budget.choose_block_bytes({}, bytes, 4 * kKiB), 8 * kKiB);
        other.account_for(std::vector<BlockExtent>{{4 * kKiB, blocks_ * 3 / 4}});
        EXPECT_EQ(budget.choose_block_bytes({}, bytes, 4 * kKiB), 16 * kKiB);
    }
    EXPECT_EQ(budget.choose_block_bytes({}, bytes, 4 * kKiB), 4 * kKiB);
}

TEST_F(MappingBudgetTest, SaysWhatToChangeWhenNoSizeFits) {
    const MappingBudget budget(2, 16 * kTiB);
    const auto refused = budget.choose_block_bytes({}, 2 * blocks_ * 4 * kMiB, 4 * kKiB);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status, HANARE_STATUS_LIMIT);
    EXPECT_NE(std::string(refused.error().text).find("raise vm.max_map_count (now "),
              std::string::npos)
        << refused.error().text;
}

TEST_F(MappingBudgetTest, IsNoLimitForEnginesWithoutMappings) {
    const MappingBudget budget(0, 16 * kTiB);
    EXPECT_EQ(budget.choose_block_bytes({}, 16 * kTiB, 4 * kKiB), 4 * kKiB);
}

}  // namespace
}  // namespace hanare::pager
