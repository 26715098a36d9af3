// SPDX-License-Identifier: Apache-2.0
#include "pager/whereabouts.hpp"

#include <algorithm>
#include <bit>

namespace hanare::pager {

namespace {

constexpr uint32_t kAll = 255;
constexpr uint32_t kLooksMax = 128;  // at the blocks of a part

// What of a block is in local memory, and what is kept anywhere, of kAll.
struct Share {
    uint32_t local = 0;
    uint32_t kept = 0;
};

Share share_of(const Region& region, uint32_t index) noexcept {
    const Block& block = region.block(index);
    const uint32_t word = block.load();
    const BlockState state = block_word::state(word);
    if (state == BlockState::kAbsent) {
        return {0, (word & block_word::kStored) != 0 ? kAll : 0};
    }
    if (state == BlockState::kExtending) return {0, kAll};  // it may have no frame yet
    if (state != BlockState::kSparse) return {kAll, kAll};
    // Of a frame that may be another block's by now.
    Frame& frame = *region.frame_of(block);
    const uint64_t here = std::atomic_ref(frame.present).load(std::memory_order_relaxed) |
                          std::atomic_ref(frame.shelved).load(std::memory_order_relaxed);
    const auto parts = static_cast<uint32_t>(std::popcount(here));
    const uint32_t local = std::min(kAll * parts / region.parts_per_block, kAll);
    return {local, (word & block_word::kStored) != 0 ? kAll : local};
}

}  // namespace

uint64_t note_whereabouts(const Region& region, std::span<std::atomic<uint8_t>> local,
                          std::span<std::atomic<uint8_t>> kept) noexcept {
    const uint64_t used = region.used_blocks.load(std::memory_order_relaxed);
    const uint64_t parts = local.size();
    if (used == 0) return 0;
    for (uint64_t part = 0; part < parts; ++part) {
        const uint64_t first = used * part / parts;
        const uint64_t last = std::max(used * (part + 1) / parts, first + 1);
        const uint64_t step = (last - first + kLooksMax - 1) / kLooksMax;
        Share sum;
        uint32_t looks = 0;
        for (uint64_t index = first; index < last; index += step, ++looks) {
            const Share share = share_of(region, static_cast<uint32_t>(index));
            sum.local += share.local;
            sum.kept += share.kept;
        }
        local[part].store(static_cast<uint8_t>(sum.local / looks), std::memory_order_relaxed);
        kept[part].store(static_cast<uint8_t>(sum.kept / looks), std::memory_order_relaxed);
    }
    return used << region.block_shift;
}

uint64_t used_bytes(const Region& region) noexcept {
    constexpr uint64_t kBlocksMax = 8192;  // that are looked at
    const uint64_t blocks = region.used_blocks.load(std::memory_order_relaxed);
    const uint64_t step = std::max<uint64_t>((blocks + kBlocksMax - 1) / kBlocksMax, 1);
    uint64_t kept = 0;
    for (uint64_t index = 0; index < blocks; index += step) {
        kept += share_of(region, static_cast<uint32_t>(index)).kept;
    }
    return std::min(kept * step, blocks * kAll) / kAll << region.block_shift;
}

}  // namespace hanare::pager
