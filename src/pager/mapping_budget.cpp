// SPDX-License-Identifier: Apache-2.0
#include "pager/mapping_budget.hpp"

#include <algorithm>
#include <vector>

#include "base/units.hpp"
#include "pager/fault/frame.hpp"
#include "pager/fault/region_table.hpp"
#include "sys/mappings.hpp"

namespace hanare::pager {

namespace {

// The program's stacks, libraries and files get an eighth.
constexpr uint64_t kProgramShare = 8;
// A region's own ends, and its block table.
constexpr uint64_t kPerRegion = 3;

std::atomic<uint64_t> all_pools{0};

bool is_in_region(uintptr_t address) {
    Region* region = region_table().enter(reinterpret_cast<const void*>(address));
    if (region != nullptr) region->leave();
    return region != nullptr;
}

}  // namespace

uint64_t mapped_blocks_max(std::span<const BlockExtent> regions, uint64_t budget_bytes) {
    std::vector<BlockExtent> sorted(regions.begin(), regions.end());
    std::ranges::sort(sorted, {}, &BlockExtent::block_bytes);
    uint64_t blocks = 0;
    for (const BlockExtent& extent : sorted) {
        const uint64_t fitting = std::min(extent.blocks, budget_bytes / extent.block_bytes);
        blocks += fitting;
        budget_bytes -= fitting * extent.block_bytes;
    }
    return blocks;
}

Result<uint64_t> mappings_for_pools() {
    HANARE_TRY_ASSIGN(const auto starts, sys::mapping_starts());
    const uint64_t max = sys::mapping_count_max();
    const auto taken = static_cast<uint64_t>(std::ranges::count_if(
                           starts, [](uintptr_t start) { return !is_in_region(start); })) +
                       max / kProgramShare;
    return max > taken ? max - taken : 0;
}

uint64_t MappingBudget::needed(std::span<const BlockExtent> regions) const {
    if (per_block_ == 0) return 0;
    return mapped_blocks_max(regions, budget_bytes_) * per_block_ + regions.size() * kPerRegion;
}

Result<uint64_t> MappingBudget::choose_block_bytes(std::span<const BlockExtent> regions,
                                                   uint64_t bytes,
                                                   uint64_t wanted_block_bytes) const {
    if (per_block_ == 0) return wanted_block_bytes;
    HANARE_TRY_ASSIGN(const uint64_t available, mappings_for_pools());
    const uint64_t others = all_pools.load() - own_;
    std::vector<BlockExtent> extents(regions.begin(), regions.end());
    extents.emplace_back();
    uint64_t mappings = 0;
    for (uint64_t size = wanted_block_bytes; size <= kBlockBytesMax; size *= 2) {
        extents.back() = {size, round_up(bytes, size) / size};
        mappings = needed(extents);
        if (mappings + others <= available) return size;
    }
    return fail(HANARE_STATUS_LIMIT,
                "a region of %s needs %llu mappings even with blocks of 4 MiB, and %llu are left: "
                "raise vm.max_map_count (now %llu) or make the local budget smaller",
                format_size(bytes).c_str(), static_cast<unsigned long long>(mappings),
                static_cast<unsigned long long>(available > others ? available - others : 0),
                static_cast<unsigned long long>(sys::mapping_count_max()));
}

void MappingBudget::settle(uint64_t mappings) {
    all_pools.fetch_add(mappings - own_);
    own_ = mappings;
}

}  // namespace hanare::pager
