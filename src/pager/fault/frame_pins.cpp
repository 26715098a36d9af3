// SPDX-License-Identifier: Apache-2.0
//
// FrameTable: the budget, and what of it cannot be evicted.
#include <algorithm>

#include "pager/fault/frame_table.hpp"

namespace hanare::pager {

namespace {

// Of what is created with a frame.
constexpr uint64_t kDescriptorsBytes = 4096;

}  // namespace

void FrameTable::set_budget(uint64_t bytes) noexcept {
    bool grows = false;
    {
        const sys::LockGuard guard(lock_);
        given_budget_bytes_ = bytes;
        exceeded_to_bytes_ = 0;
        grows = adapt_budget();
    }
    if (grows) note_progress();
}

// What must remain for blocks that are not pinned.
uint64_t FrameTable::floor_bytes() const noexcept {
    uint64_t block_bytes = 0;
    for (const FrameClass& frame_class : classes_) {
        if (frame_class.regions > 0) block_bytes = std::max(block_bytes, frame_class.block_bytes);
    }
    return kFramesMin * (block_bytes + sizeof(Frame));
}

// The same with what is kept: adopted regions are in no class's count.
uint64_t FrameTable::floor_beside_kept() const noexcept {
    uint64_t block_bytes = 0;
    for (const FrameClass& frame_class : classes_) {
        if (frame_class.open()) block_bytes = std::max(block_bytes, frame_class.block_bytes);
    }
    return kFramesMin * (block_bytes + sizeof(Frame));
}

bool FrameTable::has_room_for_kept(uint64_t bytes) noexcept {
    const sys::LockGuard guard(lock_);
    return metadata_bytes_ + pinned_bytes_ + bytes + floor_beside_kept() <= budget_bytes_;
}

bool FrameTable::charge_pinned(uint64_t bytes) noexcept {
    const sys::LockGuard guard(lock_);
    pinned_bytes_ += bytes;
    return metadata_bytes_ + pinned_bytes_ + floor_bytes() <= budget_bytes_;
}

void FrameTable::refund_pinned(uint64_t bytes) noexcept {
    const sys::LockGuard guard(lock_);
    pinned_bytes_ -= bytes;
}

uint64_t FrameTable::pinned_bytes() noexcept {
    const sys::LockGuard guard(lock_);
    return pinned_bytes_;
}

bool FrameTable::charge_kept(uint64_t bytes) noexcept {
    bool grows = false;
    {
        const sys::LockGuard guard(lock_);
        pinned_bytes_ += bytes;
        kept_bytes_ += bytes;
        grows = adapt_budget();
    }
    if (grows) note_progress();
    return grows;
}

void FrameTable::refund_kept(uint64_t bytes) noexcept {
    const sys::LockGuard guard(lock_);
    pinned_bytes_ -= bytes;
    kept_bytes_ -= bytes;
    adapt_budget();
}

// Whether it is more than before.
bool FrameTable::adapt_budget() noexcept {
    const uint64_t before = budget_bytes_;
    const uint64_t least =
        kept_bytes_ == 0 ? 0 : metadata_bytes_ + kept_bytes_ + floor_beside_kept();
    budget_bytes_ = std::max({given_budget_bytes_, least, exceeded_to_bytes_});
    return budget_bytes_ > before;
}

void FrameTable::exceed_budget(uint64_t bytes) noexcept {
    {
        const sys::LockGuard guard(lock_);
        exceeded_to_bytes_ = metadata_bytes_ + used_bytes_ + bytes + kDescriptorsBytes;
        adapt_budget();
    }
    note_progress();
}

}  // namespace hanare::pager
