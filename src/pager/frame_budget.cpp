// SPDX-License-Identifier: Apache-2.0
//
// The side of FrameTable that explains its refusals in words, and so allocates: normal context.
#include <algorithm>
#include <bit>
#include <sys/mman.h>

#include "base/units.hpp"
#include "pager/fault/frame_table.hpp"
#include "sys/process_usage.hpp"

namespace hanare::pager {

namespace {

// What the pages in spare slots may come to, of all block sizes together.  They are not charged, so
// that all engines have the same number of frames, on which exact swap counts depend.
constexpr uint64_t kSpareBytesMax = 4 * kMiB;
constexpr uint64_t kSpareShare = 32;  // nor more than one part in so many of the budget

uint32_t class_index(uint64_t block_bytes) {
    return static_cast<uint32_t>(std::countr_zero(block_bytes) - std::countr_zero(kBlockBytesMin));
}

}  // namespace

// More than fit in the budget where what has to stay in memory may exceed it (charge_kept); but
// where addresses are few, the program needs them.
uint64_t FrameTable::places_per_frame() const {
    constexpr uint64_t kPlaces = 8;
    return inherited_ && sys::free_address_bytes() == UINT64_MAX ? kPlaces : 1;
}

Result<FrameClass*> FrameTable::open_class(uint64_t block_bytes, Engine& engine) {
    const uint64_t slots = budget_bytes_ / (block_bytes + sizeof(Frame));
    if (slots < kFramesMin) {
        return fail(HANARE_STATUS_LIMIT,
                    "a local budget of %s holds only %llu blocks of %s, at least %llu are needed: "
                    "raise the budget or take smaller blocks",
                    format_size(budget_bytes_).c_str(), static_cast<unsigned long long>(slots),
                    format_size(block_bytes).c_str(), static_cast<unsigned long long>(kFramesMin));
    }
    {
        const sys::LockGuard guard(lock_);
        FrameClass& known = classes_[class_index(block_bytes)];
        if (known.open()) return &known;
    }
    const auto capacity = static_cast<uint32_t>(
        std::min<uint64_t>(slots * places_per_frame(), Block::kSparseFrame - 1));
    const uint32_t spare_max = engine.copies() ? SpareSlots::kMax : 0;
    HANARE_TRY_ASSIGN(auto arena, sys::Mapping::reserve((capacity + spare_max) * block_bytes,
                                                        std::max(block_bytes, kHugePageBytes)));
    HANARE_TRY_ASSIGN(
        auto descriptors,
        sys::Mapping::reserve(round_up(capacity * sizeof(Frame), kOsPageBytes), kOsPageBytes));
    if (!inherited_) HANARE_TRY(arena.hide_from_children());
    // Blocks come and go in pieces smaller than a huge page.
    arena.advise(MADV_NOHUGEPAGE);
    if (const int error = engine.attach_arena(arena.address(), arena.bytes()); error != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, error, "engine %s cannot take over the frames",
                          engine.name());
    }
    const uint64_t spare_most = std::min(kSpareBytesMax, budget_bytes_ / kSpareShare);
    const sys::LockGuard guard(lock_);
    FrameClass& frame_class = classes_[class_index(block_bytes)];
    if (!frame_class.open()) {
        frame_class.block_bytes = block_bytes;
        frame_class.capacity = capacity;
        frame_class.arena = std::move(arena);
        while (frame_class.spare.count < spare_max && spare_bytes_ + block_bytes <= spare_most) {
            const uint32_t slot = frame_class.spare.count++;
            frame_class.spare.slots[slot] =
                frame_class.arena.address() + (capacity + slot) * block_bytes;
            spare_bytes_ += block_bytes;
        }
        frame_class.descriptors = std::move(descriptors);
    }
    return &frame_class;
}

Result<FrameClass*> FrameTable::open_sparse_class() {
    {
        const sys::LockGuard guard(lock_);
        if (sparse_class_.open()) return &sparse_class_;
    }
    const uint64_t frames = budget_bytes_ / (kOsPageBytes + sizeof(Frame));
    const auto capacity =
        static_cast<uint32_t>(std::min<uint64_t>(frames, Block::kSparseFrame - 1));
    HANARE_TRY_ASSIGN(
        auto descriptors,
        sys::Mapping::reserve(round_up(capacity * sizeof(Frame), kOsPageBytes), kOsPageBytes));
    const sys::LockGuard guard(lock_);
    if (!sparse_class_.open()) {
        sparse_class_.capacity = capacity;
        sparse_class_.descriptors = std::move(descriptors);
    }
    return &sparse_class_;
}

Result<void> FrameTable::charge_region(FrameClass& frame_class, uint64_t blocks,
                                       uint64_t table_bytes) {
    uint64_t tables = 0;
    uint64_t floor = 0;
    {
        const sys::LockGuard guard(lock_);
        ++frame_class.regions;
        frame_class.blocks += blocks;
        metadata_bytes_ += table_bytes;
        tables = metadata_bytes_;
        floor = floor_bytes();
        if (tables + pinned_bytes_ + floor <= budget_bytes_) return {};
        --frame_class.regions;
        frame_class.blocks -= blocks;
        metadata_bytes_ -= table_bytes;
    }
    return fail(HANARE_STATUS_LIMIT,
                "of the local budget of %s the tables need %s and %llu of the largest blocks %s, "
                "besides what is pinned: raise the budget, or take larger blocks (smaller tables) "
                "or smaller ones",
                format_size(budget_bytes_).c_str(), format_size(tables).c_str(),
                static_cast<unsigned long long>(kFramesMin), format_size(floor).c_str());
}

}  // namespace hanare::pager
