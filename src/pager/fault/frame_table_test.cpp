// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/frame_table.hpp"

#include <gtest/gtest.h>
#include <optional>
#include <set>
#include <vector>

#include "base/units.hpp"

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

class SpareSlotsTest : public testing::Test {
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
            if (frame->chunk_frames > 0) table_->chunk_populated(*frame, true);
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
TEST_F(SpareSlotsTest, AreBoundedAndCharged) {
    constexpr size_t kSpare = 8;
    const auto frames = open(16 * kMiB, true, kSpare + 2);
    EXPECT_GE(table_->usage().metadata_bytes, kSpare * kBlockBytes);
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

// Regions need the room more.
TEST_F(SpareSlotsTest, AreGivenUpForARegion) {
    constexpr uint64_t kBudget = 16 * kMiB;
    const auto frames = open(kBudget, true, 2);
    FrameClass& frame_class = *frames[0]->frame_class;
    std::byte* const filled = frames[0]->memory;
    table_->empty_slot(*frames[0]);
    const uint64_t floor = kFramesMin * (kBlockBytes + sizeof(Frame));
    const uint64_t most = kBudget - floor - 2 * sizeof(Frame);
    EXPECT_FALSE(table_->charge_region(frame_class, most + kBlockBytes));
    EXPECT_EQ(*filled, std::byte{0}) << "its pages are gone";
    EXPECT_TRUE(table_->charge_region(frame_class, most - 32 * sizeof(Frame)));
    table_->refill_slot(*frames[1]);
    EXPECT_EQ(*frames[1]->memory, std::byte{2}) << "its own slot";
}

TEST_F(SpareSlotsTest, EnginesThatMoveHaveNone) {
    const auto frames = open(16 * kMiB, false, 1);
    EXPECT_LT(table_->usage().metadata_bytes, kBlockBytes);
    std::byte* const slot = frames[0]->memory;
    table_->refill_slot(*frames[0]);
    EXPECT_EQ(frames[0]->memory, slot);
}

}  // namespace
}  // namespace hanare::pager
