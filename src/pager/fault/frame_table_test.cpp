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

}  // namespace
}  // namespace hanare::pager
