// SPDX-License-Identifier: Apache-2.0
//
// Allocation in one process.  What several do is in slot_table_fork_test.cpp.
#include "store/slot_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "base/prng.hpp"
#include "store/slot_table_test_support.hpp"
#include "sys/test_support.hpp"

namespace hanare::store {
namespace {

constexpr uint32_t kNone = SlotTable::kNoSlot;
constexpr uint32_t kAny = SlotTable::kAnySlot;
constexpr uint32_t kRun = SlotTable::kRunSlots;

class SlotTableTest : public testing::Test {
protected:
    SlotTable& make(uint32_t capacity) { return tables_.make(capacity); }

    static void free_slot(SlotTable& table, uint32_t slot) {
        EXPECT_TRUE(table.drop(slot));
        table.release(slot);
    }
    static std::vector<uint32_t> take_all(SlotTable& table) {
        std::vector<uint32_t> slots;
        for (uint32_t slot; (slot = table.allocate(kAny)) != kNone;) slots.push_back(slot);
        return slots;
    }

    TestTables tables_;
};

TEST_F(SlotTableTest, RefusesImpossibleCapacities) {
    for (const uint32_t capacity : {0u, SlotTable::kCapacityMax + 1, UINT32_MAX}) {
        const auto table = SlotTable::create(capacity, tables_.file());
        ASSERT_FALSE(table);
        EXPECT_EQ(table.error().status, HANARE_STATUS_INVALID_ARGUMENT);
    }
}

TEST_F(SlotTableTest, TakesThePreferredSlotWhenItIsFree) {
    SlotTable& table = make(1000);
    EXPECT_EQ(table.allocate(777), 777u);
    EXPECT_EQ(table.usage().high_water, 778u);
    EXPECT_EQ(table.allocate(999), 999u);
    EXPECT_EQ(table.usage().used, 2u);
    EXPECT_EQ(table.usage().capacity, 1000u);
    EXPECT_EQ(table.usage().high_water, 1000u);
}

TEST_F(SlotTableTest, BeginsAFreeRunWhenThePreferredSlotIsTaken) {
    SlotTable& table = make(1000);
    EXPECT_EQ(table.allocate(5), 5u);
    for (const uint32_t preferred : {5u, kAny, 1000u}) {  // taken, none, not in the table
        const uint32_t slot = table.allocate(preferred);
        ASSERT_NE(slot, kNone);
        EXPECT_EQ(slot % kRun, 0u);
        for (uint32_t next = slot + 1; next < slot + kRun; ++next) {
            EXPECT_EQ(table.allocate(next), next);
        }
    }
    EXPECT_EQ(table.usage().used, 1 + 3 * kRun);
}

TEST_F(SlotTableTest, GivesEverySlotOnceAndThenNone) {
    constexpr uint32_t kCapacity = 5 * kRun + 7;  // the last run is no whole one
    SlotTable& table = make(kCapacity);
    std::vector<uint32_t> slots = take_all(table);
    std::ranges::sort(slots);
    std::vector<uint32_t> all(kCapacity);
    std::iota(all.begin(), all.end(), 0u);
    EXPECT_EQ(slots, all);
    EXPECT_EQ(table.usage().used, kCapacity);
    for (const uint32_t preferred : {kAny, 0u, kCapacity - 1}) {
        EXPECT_EQ(table.allocate(preferred), kNone);
    }
    for (const uint32_t slot : {40u, 0u, kCapacity - 1}) {
        free_slot(table, slot);
        EXPECT_EQ(table.allocate(kAny), slot);
        EXPECT_EQ(table.allocate(kAny), kNone);
    }
}

TEST_F(SlotTableTest, ADenseTableLeavesLittleBelowItsHighest) {
    SlotTable& table = tables_.make(100'000, SlotTable::Spread::kDense);
    std::vector<uint32_t> slots;
    for (int i = 0; i < 3000; ++i) slots.push_back(table.allocate(kAny));
    EXPECT_EQ(std::set<uint32_t>(slots.begin(), slots.end()).size(), slots.size());
    EXPECT_LE(table.usage().high_water, 3000 + 3000 / 4 + 5 * kRun);
    // Neighbours all the same, while there is room for them.
    SlotTable& other = tables_.make(100'000, SlotTable::Spread::kDense);
    const uint32_t first = other.allocate(kAny);
    const uint32_t second = other.allocate(kAny);
    EXPECT_EQ(other.allocate(first + 1), first + 1);
    EXPECT_EQ(other.allocate(second + 1), second + 1);
    EXPECT_GE(second - first, kRun);
}

TEST_F(SlotTableTest, FindsEverySlotThatWasReleasedInAFullTable) {
    constexpr uint32_t kCapacity = 4096;
    SlotTable& table = make(kCapacity);
    ASSERT_EQ(take_all(table).size(), kCapacity);
    Prng prng(sys::testing::test_seed());
    std::set<uint32_t> released;
    while (released.size() < kCapacity / 8) {
        released.insert(static_cast<uint32_t>(prng.below(kCapacity)));
    }
    for (const uint32_t slot : released) free_slot(table, slot);
    const std::vector<uint32_t> found = take_all(table);
    EXPECT_EQ(std::set<uint32_t>(found.begin(), found.end()), released);
    EXPECT_EQ(found.size(), released.size());
}

TEST_F(SlotTableTest, ADroppedSlotStaysInUseUntilItIsReleased) {
    SlotTable& table = make(kRun);
    ASSERT_EQ(take_all(table).size(), kRun);
    EXPECT_TRUE(table.drop(3));
    EXPECT_EQ(table.allocate(3), kNone);
    EXPECT_EQ(table.usage().used, kRun);
    table.release(3);
    EXPECT_EQ(table.usage().used, kRun - 1);
    EXPECT_EQ(table.allocate(3), 3u);
}

// Each group asks for the slot behind its last one, all groups in turn.
class Groups {
public:
    Groups(SlotTable& table, size_t count) : table_(table), slots_(count) {}

    void grow(uint32_t blocks) {
        for (uint32_t i = 0; i < blocks; ++i) {
            for (auto& group : slots_) {
                group.push_back(table_.allocate(group.empty() ? kAny : group.back() + 1));
                EXPECT_NE(group.back(), kNone);
            }
        }
    }
    void release() {
        for (const auto& group : slots_) {
            for (const uint32_t slot : group) {
                EXPECT_TRUE(table_.drop(slot));
                table_.release(slot);
            }
        }
        for (auto& group : slots_) group.clear();
    }
    size_t split() const {
        return static_cast<size_t>(std::ranges::count_if(slots_, [](const auto& group) {
            return group.back() - group.front() + 1 != group.size();
        }));
    }

private:
    SlotTable& table_;
    std::vector<std::vector<uint32_t>> slots_;
};

TEST_F(SlotTableTest, KeepsNeighboursTogetherWhenManyGroupsGrowInTurn) {
    SlotTable& table = make(1 << 16);
    Groups groups(table, 500);
    groups.grow(kRun);
    EXPECT_EQ(groups.split(), 0u);
    EXPECT_EQ(table.usage().high_water, 500 * kRun);
}

TEST_F(SlotTableTest, ReusesReleasedRunsBeforeItTakesFreshOnes) {
    SlotTable& table = make(1 << 20);
    Groups kept(table, 100);
    Groups released(table, 300);
    kept.grow(kRun);
    released.grow(kRun);
    for (int round = 0; round < 20; ++round) {
        released.release();
        released.grow(kRun);
        EXPECT_EQ(released.split(), 0u);
    }
    EXPECT_EQ(table.usage().used, 400 * kRun);
    EXPECT_LT(table.usage().high_water, 2 * 400 * kRun);
}

TEST_F(SlotTableTest, HasRoomForMillionsAndTouchesOnlyWhatIsUsed) {
    SlotTable& table = make(uint32_t{64} << 20);
    EXPECT_EQ(table.usage().capacity, uint32_t{64} << 20);
    EXPECT_EQ(table.allocate(kAny), 0u);
    EXPECT_EQ(table.allocate((uint32_t{64} << 20) - 1), (uint32_t{64} << 20) - 1);
    EXPECT_EQ(table.usage().used, 2u);
}

TEST_F(SlotTableTest, ThreadsNeverHoldTheSameSlot) {
    constexpr uint32_t kCapacity = 10 * kRun + 3;
    constexpr int kThreads = 4;
    SlotTable& table = make(kCapacity);
    std::vector<std::atomic<int>> holders(kCapacity);
    std::atomic<uint32_t> clashes = 0;
    std::atomic<uint32_t> allocated = 0;
    const uint64_t seed = sys::testing::test_seed();
    std::vector<std::thread> threads;
    for (int thread = 1; thread <= kThreads; ++thread) {
        threads.emplace_back([&, thread] {
            Prng prng(seed + static_cast<uint64_t>(thread));
            std::vector<uint32_t> mine;
            for (int step = 0; step < 50000; ++step) {
                const uint32_t preferred = mine.empty() ? kAny : mine.back() + 1;
                // Together they want more than there is.
                if (mine.size() < kCapacity / 3 && prng.below(3) != 0) {
                    const uint32_t slot = table.allocate(preferred);
                    if (slot == kNone) continue;
                    if (holders[slot].exchange(thread) != 0) ++clashes;
                    mine.push_back(slot);
                    ++allocated;
                } else if (!mine.empty()) {
                    std::swap(mine[prng.below(mine.size())], mine.back());
                    const uint32_t slot = mine.back();
                    mine.pop_back();
                    if (holders[slot].exchange(0) != thread) ++clashes;
                    if (!table.drop(slot)) ++clashes;
                    table.release(slot);
                }
            }
            for (const uint32_t slot : mine) {
                if (holders[slot].exchange(0) != thread) ++clashes;
                table.drop(slot);
                table.release(slot);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(clashes, 0u);
    EXPECT_GT(allocated, 10 * kCapacity);
    EXPECT_EQ(table.usage().used, 0u);
    EXPECT_EQ(take_all(table).size(), kCapacity);
}

TEST_F(SlotTableTest, FindsWhatIsFreeBelowALimit) {
    SlotTable& table = tables_.make(100);
    for (uint32_t slot = 0; slot < 50; ++slot) ASSERT_EQ(table.allocate(slot), slot);
    EXPECT_EQ(table.allocate_below(50), SlotTable::kNoSlot);
    for (const uint32_t slot : {7u, 49u, 23u}) table.release(slot);
    EXPECT_EQ(table.allocate_below(7), SlotTable::kNoSlot);
    std::set<uint32_t> found;
    for (int i = 0; i < 2; ++i) found.insert(table.allocate_below(49));
    EXPECT_EQ(found, (std::set<uint32_t>{7, 23}));
    EXPECT_EQ(table.allocate_below(49), SlotTable::kNoSlot);
    EXPECT_EQ(table.allocate_below(1000), 49u);
    EXPECT_GE(table.allocate_below(1000), 50u);
}

}  // namespace
}  // namespace hanare::store
