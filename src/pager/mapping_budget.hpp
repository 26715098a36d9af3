// SPDX-License-Identifier: Apache-2.0
//
// Engines that spend mappings on mapped blocks (segv-remap) must not run into vm.max_map_count, so
// the blocks of a region have to be large enough.  This chooses them, and keeps account of what all
// pools of the process may need.  Normal context; each MappingBudget under its pool's lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/result.hpp"

namespace hanare::pager {

struct BlockExtent {
    uint64_t block_bytes = 0;
    uint64_t blocks = 0;
};

// The largest number of these blocks that fit into the budget at the same time.
uint64_t mapped_blocks_max(std::span<const BlockExtent> regions, uint64_t budget_bytes);

// What the pools of this process may use: the limit, less what is mapped outside of regions, less a
// part that is left to the program.
Result<uint64_t> mappings_for_pools();

class MappingBudget {
public:
    MappingBudget(uint32_t mappings_per_block, uint64_t budget_bytes)
        : per_block_(mappings_per_block), budget_bytes_(budget_bytes) {}
    MappingBudget(const MappingBudget&) = delete;
    MappingBudget& operator=(const MappingBudget&) = delete;
    ~MappingBudget() { settle(0); }

    // The smallest allowed block size, not below the wanted one, with which a further region of
    // `bytes` leaves enough mappings for all pools.  LIMIT when there is none.
    Result<uint64_t> choose_block_bytes(std::span<const BlockExtent> regions, uint64_t bytes,
                                        uint64_t wanted_block_bytes) const;

    // Accounts for these regions, and for no others any more.
    void account_for(std::span<const BlockExtent> regions) { settle(needed(regions)); }

private:
    uint64_t needed(std::span<const BlockExtent> regions) const;
    void settle(uint64_t mappings);

    const uint32_t per_block_;
    const uint64_t budget_bytes_;
    uint64_t own_ = 0;  // counted in the sum of all pools
};

}  // namespace hanare::pager
