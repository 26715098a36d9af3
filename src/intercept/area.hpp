// SPDX-License-Identifier: Apache-2.0
//
// Area: a contiguous range of the program's addresses, all of it one region of the pool, and what
// the program has mapped in it.  To the program it behaves as memory that the kernel has mapped;
// the calls are named after the system calls and return what these return: a result, or a negative
// errno value.  Ranges are of whole OS pages and lie inside the area.
//
// The caller holds the space's lock, with all signals but faults blocked: clearing part of a block
// touches far memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "intercept/ranges.hpp"
#include "pager/pool.hpp"

namespace hanare::intercept {

class Area {
public:
    // `allocates`: map() may choose addresses in it.
    Area(pager::Pool& pool, pager::Region& region, bool allocates);

    uintptr_t begin() const noexcept { return reinterpret_cast<uintptr_t>(region_.begin()); }
    uintptr_t end() const noexcept { return reinterpret_cast<uintptr_t>(region_.end()); }
    bool contains(uintptr_t address) const noexcept { return address - begin() < end() - begin(); }
    const RangeMap& ranges() const noexcept { return ranges_; }
    uint64_t bytes_peak() const noexcept { return bytes_peak_; }
    pager::Region& region() noexcept { return region_; }

    // Anonymous memory anywhere; -ENOMEM if there is no room.
    int64_t map(size_t bytes, RangeKind kind);
    // At that address; what was there is gone.
    void map_over(uintptr_t begin, uintptr_t end, RangeKind kind);
    // The same for what only the kernel can map (the arguments of mmap).  What it refuses to map
    // at all leaves what was there.
    int64_t map_foreign(uintptr_t begin, uintptr_t end, int protection, int flags, int file,
                        int64_t offset);
    void unmap(uintptr_t begin, uintptr_t end);
    int64_t protect(uintptr_t begin, uintptr_t end, int protection);
    int64_t advise(uintptr_t begin, uintptr_t end, int advice);
    // Grows or shrinks where it is; false if it cannot.
    bool resize(uintptr_t old_end, uintptr_t new_end);
    // Moves what is at [begin, end) to a new place that is `bytes` long.
    int64_t move(uintptr_t begin, uintptr_t end, size_t bytes);

private:
    uint32_t block_of(uintptr_t address) const noexcept {
        return static_cast<uint32_t>((address - begin()) >> region_.block_shift);
    }
    uint32_t block_behind(uintptr_t end) const noexcept {
        return block_of(end + region_.block_bytes - 1);
    }
    uintptr_t address_of(uint32_t block) const noexcept {
        return begin() + (static_cast<uintptr_t>(block) << region_.block_shift);
    }
    bool is_whole(uint32_t block, uintptr_t begin, uintptr_t end) const noexcept {
        return address_of(block) >= begin && address_of(block + 1) <= end;
    }
    bool is_empty(uint32_t block) const noexcept;
    uint32_t blocks_of(size_t bytes) const noexcept {
        return static_cast<uint32_t>((bytes + region_.block_bytes - 1) >> region_.block_shift);
    }

    void clear(uintptr_t begin, uintptr_t end);
    void clear_part(uint32_t block, uintptr_t begin, uintptr_t end);
    void forget(uint32_t block);
    void write_zeros(uint32_t block, uintptr_t begin, uintptr_t end);
    void free_block(uint32_t block);
    void claim(uintptr_t begin, uintptr_t end);
    void refresh_access(uintptr_t begin, uintptr_t end);
    void pin(uint32_t block);
    void unpin_unless_needed(uint32_t block);
    void give_back_to_pager(const Range& range);
    void forget_sealed(const Range& range);
    int64_t guard(uintptr_t begin, uintptr_t end, int protection);
    int64_t protect_range(const Range& range, int protection);
    int64_t reserve(const Range& range);
    void note_peak() noexcept;

    pager::Pool& pool_;
    pager::Region& region_;
    const bool allocates_;
    RangeMap ranges_;
    BlockGaps gaps_;
    uint64_t bytes_peak_ = 0;
};

}  // namespace hanare::intercept
