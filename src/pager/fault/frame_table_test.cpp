// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/frame_table.hpp"

#include <bit>
#include <gtest/gtest.h>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "pager/fault/region.hpp"
#include "sys/memory.hpp"

namespace hanare::pager {
namespace {

constexpr uint64_t kBlockBytes = 64 * kKiB;

// Only its way to map matters here; nothing is mapped.
class FakeEngine final : public Engine {
public:
    explicit FakeEngine(bool copies) : copies_(copies) {}
    const char* name() const noexcept override { return "fake"; }
    bool copies() const noexcept override { return copies_; }
    int attach(std::byte*, size_t) noexcept override { return 0; }
    int attach_arena(std::byte*, size_t) noexcept override { return 0; }
    int populate(std::byte*, size_t) noexcept override { return 0; }
    int install_writable(std::byte*, std::byte*, size_t, FilePlace) noexcept override {
        return ENOSYS;
    }
    int install_read_only(std::byte*, std::byte*, size_t, bool*) noexcept override {
        return ENOSYS;
    }
    int withdraw(std::byte*, std::byte*, size_t, FilePlace) noexcept override { return ENOSYS; }
    int allow_writes(std::byte*, size_t) noexcept override { return ENOSYS; }
    void abandon_in_child() noexcept override {}

private:
    const bool copies_;
};

class FrameTableTest : public testing::Test {
protected:
    // Frames whose slots are marked with their numbers, from 1.
    std::vector<Frame*> open(uint64_t budget_bytes, bool copies, size_t count) {
        table_.emplace(budget_bytes, Replacement::kSecondChance);
        engine_.emplace(copies);
        auto frame_class = table_->open_class(kBlockBytes, *engine_);
        EXPECT_TRUE(frame_class);
        std::vector<Frame*> frames;
        while (frames.size() < count) {
            Frame* const frame = table_->acquire(**frame_class, FrameTable::UseAhead::kNever, true);
            if (frame == nullptr) break;
            if (frame->chunk_frames > 0) table_->chunk_populated(*frame, true, true);
            frame->bare = false;
            frames.push_back(frame);
            *frame->memory = static_cast<std::byte>(frames.size());
        }
        EXPECT_EQ(frames.size(), count);
        return frames;
    }

    std::optional<FrameTable> table_;
    std::optional<FakeEngine> engine_;
};

using SpareSlotsTest = FrameTableTest;

TEST_F(SpareSlotsTest, PagesOfWhoComesAreForWhoLeaves) {
    const auto frames = open(16 * kMiB, true, 2);
    std::byte* const left = frames[0]->memory;
    table_->empty_slot(*frames[0]);
    EXPECT_NE(frames[0]->memory, left);
    table_->refill_slot(*frames[1]);
    EXPECT_EQ(frames[1]->memory, left);
    EXPECT_EQ(*left, std::byte{1});
    EXPECT_EQ(*frames[0]->memory, std::byte{0}) << "a slot without pages";
}

// 8 slots are a 32nd of the budget; whoever comes when all are filled gives its pages back.
TEST_F(SpareSlotsTest, AreBounded) {
    constexpr size_t kSpare = 8;
    const auto frames = open(16 * kMiB, true, kSpare + 2);
    std::set<std::byte*> slots;
    for (Frame* frame : frames) {
        table_->empty_slot(*frame);
        EXPECT_EQ(*frame->memory, std::byte{0});
        slots.insert(frame->memory);
    }
    size_t refilled = 0;
    for (Frame* frame : frames) {
        table_->refill_slot(*frame);
        refilled += *frame->memory != std::byte{0};
        slots.insert(frame->memory);
    }
    EXPECT_EQ(refilled, kSpare);
    EXPECT_EQ(slots.size(), frames.size() + kSpare);
}

// The second block size finds what the first one has left, which is nothing.
TEST_F(SpareSlotsTest, AreBoundedForAllBlockSizesTogether) {
    open(16 * kMiB, true, 1);
    auto other = table_->open_class(2 * kBlockBytes, *engine_);
    ASSERT_TRUE(other);
    EXPECT_EQ((*other)->spare.count, 0u);
    table_.emplace(64 * kGiB, Replacement::kSecondChance);
    other = table_->open_class(4 * kMiB, *engine_);
    ASSERT_TRUE(other);
    EXPECT_EQ((*other)->spare.count, 1u) << "of a large budget a few MiB";
}

TEST_F(SpareSlotsTest, EnginesThatMoveHaveNone) {
    const auto frames = open(16 * kMiB, false, 1);
    EXPECT_EQ(frames[0]->frame_class->spare.count, 0u);
    std::byte* const slot = frames[0]->memory;
    table_->refill_slot(*frames[0]);
    EXPECT_EQ(frames[0]->memory, slot);
}

using ChunksAheadTest = FrameTableTest;

constexpr uint64_t kRegionBlocks = 4096;

// Wants 4 MiB free, a sixteenth.
TEST_F(ChunksAheadTest, KeepSomeFramesFreeOfAPoolThatGrows) {
    const auto frames = open(64 * kMiB, false, 1);
    FrameClass& frame_class = *frames[0]->frame_class;
    EXPECT_EQ(table_->next_chunk_ahead(), nullptr) << "no region uses the class";
    EXPECT_FALSE(table_->is_low(0, true, true));
    ASSERT_TRUE(table_->charge_region(frame_class, kRegionBlocks, 4096));
    EXPECT_TRUE(table_->is_low(0, true, true));
    EXPECT_FALSE(table_->is_low(0, true, false));
    while (Frame* leader = table_->next_chunk_ahead()) {
        EXPECT_TRUE(leader->bare);
        EXPECT_EQ(table_->next_chunk_ahead(), nullptr) << "one at a time";
        table_->chunk_populated(*leader, true, false);
        EXPECT_FALSE(leader->bare);
        EXPECT_TRUE(leader->zeroed);
    }
    EXPECT_FALSE(table_->is_low(0, true, true));
    EXPECT_GE(frame_class.free_bytes(), table_->low_water_bytes());
    EXPECT_LT(frame_class.free_bytes(), table_->low_water_bytes() + kHugePageBytes);
    EXPECT_EQ(table_->usage().frame_bytes, frame_class.free_bytes() + kBlockBytes);
}

// Otherwise a fault that finds no frame free would evict what fits in the budget.
TEST_F(ChunksAheadTest, LeaveRoomForThatOfAFault) {
    const auto frames = open(16 * kMiB, false, 1);
    FrameClass& frame_class = *frames[0]->frame_class;
    ASSERT_TRUE(table_->charge_region(frame_class, kRegionBlocks, 4096));
    const auto acquire = [&] {
        return table_->acquire(frame_class, FrameTable::UseAhead::kNever, true);
    };
    const auto use_up = [&] {
        while (!frame_class.free.empty()) acquire();
    };
    use_up();
    size_t chunks = 0;
    for (; Frame* const ahead = table_->next_chunk_ahead(); ++chunks) {
        Frame* const wanted = acquire();
        ASSERT_NE(wanted, nullptr);
        EXPECT_GT(wanted->chunk_frames, 0u);
        table_->chunk_populated(*wanted, true, true);
        table_->chunk_populated(*ahead, true, false);
        use_up();
    }
    EXPECT_GT(chunks, 1u);
    EXPECT_FALSE(table_->is_low(0, true, true)) << "there is no room for more";
}

TEST_F(ChunksAheadTest, AreNoMoreThanTheBlocksNeed) {
    const auto frames = open(64 * kMiB, false, 1);
    FrameClass& frame_class = *frames[0]->frame_class;
    ASSERT_TRUE(table_->charge_region(frame_class, kHugePageBytes / kBlockBytes, 4096));
    EXPECT_EQ(table_->next_chunk_ahead(), nullptr);
    ASSERT_TRUE(table_->charge_region(frame_class, 1, 4096));
    Frame* const leader = table_->next_chunk_ahead();
    ASSERT_NE(leader, nullptr);
    table_->chunk_populated(*leader, true, false);
    EXPECT_EQ(table_->next_chunk_ahead(), nullptr);
}

TEST_F(ChunksAheadTest, ThatGetNoPagesCountForNothingAndAreTheLast) {
    const auto frames = open(64 * kMiB, false, 1);
    FrameClass& frame_class = *frames[0]->frame_class;
    ASSERT_TRUE(table_->charge_region(frame_class, kRegionBlocks, 4096));
    const FrameTable::Usage before = table_->usage();
    Frame* const leader = table_->next_chunk_ahead();
    ASSERT_NE(leader, nullptr);
    EXPECT_EQ(table_->usage().frame_bytes, before.frame_bytes + kHugePageBytes);
    table_->chunk_populated(*leader, false, false);
    EXPECT_EQ(table_->usage().frame_bytes, before.frame_bytes);
    EXPECT_EQ(frame_class.bare.size(), kHugePageBytes / kBlockBytes);
    EXPECT_FALSE(table_->is_populating());
    EXPECT_EQ(table_->next_chunk_ahead(), nullptr) << "what has no pages comes first";
}

// Frames of blocks that were read ahead.
class AheadTest : public FrameTableTest {
protected:
    void SetUp() override {
        region_.block_bytes = kBlockBytes;
        auto table = sys::Mapping::reserve(kOsPageBytes, kOsPageBytes);
        ASSERT_TRUE(table);
        region_.table = std::move(*table);
    }
    void stage(Frame& frame, uint32_t block = 0, FrameQueue queue = FrameQueue::kAhead) {
        frame.region = &region_;
        frame.block = block;
        region_.add_resident(kBlockBytes);
        ASSERT_TRUE(region_.block(block).try_enter(0, BlockState::kStaged));
        table_->enqueue(frame, queue);
    }
    Frame* acquire(FrameClass& frame_class, FrameTable::UseAhead use_ahead) {
        Frame* const frame = table_->acquire(frame_class, use_ahead, true);
        if (frame == nullptr) return nullptr;
        if (frame->chunk_frames > 0) table_->chunk_populated(*frame, true, true);
        frame->bare = false;
        return frame;
    }

    Region region_;
};

TEST_F(AheadTest, WhatNobodyUsesForLongGoes) {
    const auto frames = open(16 * kMiB, false, 1);
    FrameClass& frame_class = *frames[0]->frame_class;
    stage(*frames[0]);
    Frame* last = nullptr;
    while (Frame* frame = acquire(frame_class, FrameTable::UseAhead::kBeyondShare)) last = frame;
    ASSERT_NE(last, nullptr);
    // Less than the budget was given since.
    EXPECT_EQ(block_word::state(region_.block(0).load()), BlockState::kStaged);
    for (uint64_t bytes = 0; bytes < 2 * kMiB; bytes += kBlockBytes) {
        table_->release(*last, false);
        ASSERT_EQ(acquire(frame_class, FrameTable::UseAhead::kNever), last);
    }
    EXPECT_EQ(acquire(frame_class, FrameTable::UseAhead::kNever), nullptr);
    EXPECT_EQ(acquire(frame_class, FrameTable::UseAhead::kBeyondShare), frames[0]);
    EXPECT_EQ(block_word::state(region_.block(0).load()), BlockState::kAbsent);
}

// Also where room is made before anybody lacks it.
TEST_F(AheadTest, WhatNobodyUsesForLongIsGivenUpUnasked) {
    const auto frames = open(16 * kMiB, false, 2);
    stage(*frames[0]);
    const uint64_t before = table_->usage().frame_bytes;
    EXPECT_FALSE(table_->give_up_stale());
    for (uint64_t bytes = 0; bytes <= 16 * kMiB; bytes += kOsPageBytes) {
        ASSERT_TRUE(table_->reserve(kOsPageBytes, FrameTable::UseAhead::kNever));
        table_->refund(kOsPageBytes);
    }
    EXPECT_TRUE(table_->give_up_stale());
    EXPECT_EQ(block_word::state(region_.block(0).load()), BlockState::kAbsent);
    EXPECT_EQ(table_->usage().frame_bytes, before - kBlockBytes);
    EXPECT_FALSE(table_->give_up_stale()) << "there is no other";
}

// Before what was withdrawn, which may be in use: many streams would leave no room for that.
TEST_F(AheadTest, TheNewestGoesWhereTheyAreMany) {
    constexpr uint32_t kShare = 4 * kMiB / kBlockBytes;
    const auto frames = open(16 * kMiB, false, kShare + 2);
    FrameClass& frame_class = *frames[0]->frame_class;
    for (uint32_t i = 0; i <= kShare; ++i) stage(*frames[i], i);
    stage(*frames[kShare + 1], kShare + 1, FrameQueue::kInactive);
    // All that is free.
    Frame* next = acquire(frame_class, FrameTable::UseAhead::kBeyondShare);
    while (next != nullptr && next != frames[kShare]) {
        next = acquire(frame_class, FrameTable::UseAhead::kBeyondShare);
    }
    EXPECT_EQ(next, frames[kShare]);
    EXPECT_EQ(acquire(frame_class, FrameTable::UseAhead::kBeyondShare), frames[kShare + 1]);
    EXPECT_EQ(acquire(frame_class, FrameTable::UseAhead::kBeyondShare), nullptr);
    EXPECT_EQ(acquire(frame_class, FrameTable::UseAhead::kAlways), frames[0]);
}

TEST_F(AheadTest, FillMoreThanHalfOfTheBudgetOnlyWhereItHasRoom) {
    constexpr uint32_t kHalf = 8 * kMiB / kBlockBytes;
    const auto frames = open(16 * kMiB, false, kHalf);
    for (uint32_t i = 0; i < kHalf; ++i) {
        EXPECT_TRUE(table_->may_fill_ahead(kBlockBytes));
        stage(*frames[i], i);
    }
    EXPECT_TRUE(table_->may_fill_ahead(kBlockBytes)) << "there is other room";
    FrameClass& frame_class = *frames[0]->frame_class;
    while (acquire(frame_class, FrameTable::UseAhead::kNever) != nullptr) {
    }
    EXPECT_FALSE(table_->may_fill_ahead(kBlockBytes));
}

// Mapped blocks that equal the store, of memory that was adopted or not.
class ProtectedTest : public AheadTest {
protected:
    static constexpr uint32_t kProtected = 8;
    static constexpr uint32_t kProbation = 8;

    void open_mapped(bool is_adopted) {
        if (is_adopted) {
            auto access = sys::Mapping::reserve(kOsPageBytes, kOsPageBytes);
            ASSERT_TRUE(access);
            region_.access_table = std::move(*access);
        }
        const auto frames = open(16 * kMiB, false, kProtected + kProbation);
        for (uint32_t i = 0; i < kProtected + kProbation; ++i) {
            frames[i]->region = &region_;
            frames[i]->block = i;
            ASSERT_TRUE(region_.block(i).try_enter(0, BlockState::kReadOnly));
            table_->enqueue(*frames[i],
                            i < kProtected ? FrameQueue::kProtected : FrameQueue::kProbation);
        }
    }
    // The block that leaves next, and whether it is hidden before.
    std::pair<uint32_t, bool> next_victim() {
        FrameQueue queue = FrameQueue::kNone;
        Frame* const frame = table_->select_victim(queue);
        if (frame == nullptr) return {UINT32_MAX, false};
        return {frame->block, table_->wants_hidden(*frame, queue)};
    }
};

// 16 blocks have come: two are tested.
TEST_F(ProtectedTest, IsTestedInTheMeasureOfWhatComes) {
    open_mapped(true);
    for (uint32_t i = kProtected; i < kProtected + kProbation; ++i) {
        EXPECT_EQ(next_victim(), std::pair(i, false));
    }
    EXPECT_EQ(next_victim(), std::pair(0u, true));
    EXPECT_EQ(next_victim(), std::pair(1u, true));
    // More than three quarters are protected.
    EXPECT_EQ(next_victim(), std::pair(2u, false));
}

TEST_F(ProtectedTest, IsTestedAllTheSooner) {
    open_mapped(true);
    for (uint64_t bytes = 0; bytes < 16 * kMiB; bytes += kBlockBytes) {
        ASSERT_TRUE(table_->reserve(kBlockBytes, FrameTable::UseAhead::kNever));
        table_->refund(kBlockBytes);
    }
    for (uint32_t i = kProtected; i < kProtected + kProbation; ++i) {
        EXPECT_EQ(next_victim(), std::pair(i, false));
    }
    for (uint32_t i = 0; i < kProtected; ++i) EXPECT_EQ(next_victim(), std::pair(i, true));
    EXPECT_EQ(next_victim(), std::pair(UINT32_MAX, false));
}

// What would leave at once stays as long as it is not too much.
TEST_F(ProtectedTest, StaysWhereNothingIsHidden) {
    open_mapped(false);
    for (uint32_t i = kProtected; i < kProtected + kProbation; ++i) {
        EXPECT_EQ(next_victim(), std::pair(i, false));
    }
}

// Blocks of which some parts are mapped and some on the shelf.
class DroppedTest : public ProtectedTest {
protected:
    static constexpr uint64_t kPresent = 0x000f;
    static constexpr uint64_t kShelved = 0xfff0;
    static constexpr uint32_t kBlocks = 3;

    void SetUp() override {
        AheadTest::SetUp();
        region_.part_bytes = kOsPageBytes;
        region_.part_shift = static_cast<uint32_t>(std::countr_zero(kOsPageBytes));
        region_.parts_per_block = kBlockBytes / kOsPageBytes;
        whole_ = open(16 * kMiB, false, 1)[0];
        auto sparse_class = table_->open_sparse_class();
        auto shelf = sys::Mapping::reserve(kOsPageBytes, kOsPageBytes);
        ASSERT_TRUE(sparse_class && shelf);
        region_.shelf = std::move(*shelf);
        for (uint32_t i = 0; i < kBlocks; ++i) {
            Frame* const frame = table_->acquire_sparse(**sparse_class);
            ASSERT_NE(frame, nullptr);
            frame->region = &region_;
            frame->block = i;
            frame->present = kPresent;
            frame->shelved = kShelved;
            ASSERT_TRUE(table_->reserve(kBlockBytes, FrameTable::UseAhead::kNever));
            ASSERT_TRUE(region_.block(i).try_enter(0, BlockState::kSparse));
            table_->requeue_sparse(*frame, kBlockBytes);
            frames_.push_back(frame);
        }
        table_->mark_drop(*frames_[1], region_, 1);
    }

    Frame* whole_ = nullptr;
    std::vector<Frame*> frames_;
};

TEST_F(DroppedTest, WhatStreamsHaveNotUsedGoesFirst) {
    EXPECT_EQ(next_victim(), std::pair(1u, false));
    EXPECT_EQ(next_victim(), std::pair(0u, false));
}

TEST_F(DroppedTest, NeighboursGo) {
    frames_[1]->neighbours = kShelved;
    EXPECT_EQ(next_victim(), std::pair(1u, false));
}

TEST_F(DroppedTest, WhatIsUsedAgainIsNotLeft) {
    frames_[1]->shelved = 0;
    table_->note_back_from_shelf(*frames_[1], false);
    EXPECT_EQ(next_victim(), std::pair(0u, false));
    table_->mark_drop(*frames_[1], region_, 1);  // all of it is in use
    EXPECT_EQ(next_victim(), std::pair(2u, false));
    EXPECT_EQ(next_victim(), std::pair(1u, true));
}

TEST_F(DroppedTest, WhatGetsMoreIsNotLeft) {
    table_->resize_sparse(*frames_[1], kBlockBytes);
    EXPECT_EQ(next_victim(), std::pair(0u, false));
}

TEST_F(DroppedTest, WholeBlocksAreFoundBehindThem) {
    EXPECT_EQ(table_->select_dropped(), nullptr);
    whole_->region = &region_;
    whole_->block = kBlocks;
    ASSERT_TRUE(region_.block(kBlocks).try_enter(0, BlockState::kReadOnly));
    table_->enqueue(*whole_, FrameQueue::kProbation);
    table_->mark_drop(*whole_, region_, kBlocks);
    table_->mark_drop(*frames_[2], region_, 2);
    EXPECT_EQ(table_->select_dropped(), whole_);
    EXPECT_EQ(next_victim(), std::pair(2u, false));
}

}  // namespace
}  // namespace hanare::pager
