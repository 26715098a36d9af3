// SPDX-License-Identifier: Apache-2.0
//
// Region: a contiguous range of far memory and the table of its blocks.  Created and ended by Pool;
// fault handlers and the keeper reach it between enter() and leave(), which keeps it alive.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "hanare/stats.h"
#include "pager/fault/block.hpp"
#include "pager/fault/dense_use.hpp"
#include "pager/fault/first_writes.hpp"
#include "pager/fault/frame.hpp"
#include "pager/fault/read_around.hpp"
#include "pager/fault/repeated_use.hpp"
#include "pager/fault/stream_density.hpp"
#include "pager/fault/stream_fill.hpp"
#include "pager/fault/stream_table.hpp"
#include "sys/file.hpp"
#include "sys/futex.hpp"
#include "sys/memory.hpp"

namespace hanare::pager {

class Pager;

// One relaxed atomic per counter of the public statistics.
struct RegionCounters {
#define HANARE_COUNTER_FIELD(name, text) std::atomic<uint64_t> name{0};
    HANARE_COUNTER_MAP(HANARE_COUNTER_FIELD)
#undef HANARE_COUNTER_FIELD
};

inline void count(std::atomic<uint64_t>& counter, uint64_t amount = 1) noexcept {
    counter.fetch_add(amount, std::memory_order_relaxed);
}

// What the program may do with a block of memory that was adopted from it.
namespace block_access {
inline constexpr uint8_t kUsable = 1;   // some of it is mapped, as the program sees it
inline constexpr uint8_t kForeign = 2;  // some of it is mapped by the kernel, in another way
inline constexpr uint8_t kStack = 4;    // a stack pointer was seen in it: it stays in memory
inline constexpr uint8_t kGuarded = 8;  // pinned, since the kernel protects or maps some of it
}  // namespace block_access

struct Region {
    // Constant after construction.
    Pager* pager = nullptr;
    FrameClass* frame_class = nullptr;
    FrameClass* sparse_class = nullptr;
    sys::FileDescriptor file;  // whose memory the range is; not open: memory of its own
    sys::Mapping range;
    sys::Mapping table;  // of blocks, and behind it of checksums, one of 32 bits per part
    uint64_t block_bytes = 0;
    uint64_t part_bytes = 0;
    uint32_t block_shift = 0;
    uint32_t part_shift = 0;
    uint32_t parts_per_block = 1;  // 1 to 64; 1: blocks are never sparse
    uint32_t block_count = 0;
    uint64_t store_offset = 0;
    uint64_t requested_bytes = 0;
    // Of regions in which a program's own memory lies (Pool::adopt): what it may do with each
    // block, one byte each (BlockAccess).  Not mapped: everything.
    sys::Mapping access_table;
    // And for each block one more than the slot of the store that holds its content, 0: none yet.
    sys::Mapping slot_table;
    // Of regions whose sparse blocks are evicted part by part: as large as the range; parts that
    // were withdrawn, or read along with others, wait there, each at its place.
    sys::Mapping shelf;

    // Own synchronisation.
    std::atomic<hanare_advice> advice{HANARE_ADVICE_NORMAL};
    std::atomic<uint64_t> resident_bytes{0};
    std::atomic<uint64_t> dirty_bytes{0};
    std::atomic<uint64_t> pinned_blocks{0};
    std::atomic<uint32_t> blocks_in_transfer{0};  // in kReading or kStoring
    std::atomic<uint32_t> used_blocks{0};         // of adopted memory: none behind was ever usable
    StreamTable streams;
    StreamDensity density;
    RepeatedUse repeats;
    StreamFill fill;
    ReadAround around;
    FirstWrites first_writes;
    DenseUse dense;
    RegionCounters counters;

    std::byte* begin() const { return range.address(); }
    std::byte* end() const { return range.address() + range.bytes(); }
    Block* blocks() const { return reinterpret_cast<Block*>(table.address()); }
    Block& block(uint32_t index) const { return blocks()[index]; }
    uint32_t index_of(const void* address) const {
        return static_cast<uint32_t>(
            static_cast<uint64_t>(static_cast<const std::byte*>(address) - begin()) >> block_shift);
    }
    std::byte* address_of(uint32_t index) const {
        return begin() + (static_cast<uint64_t>(index) << block_shift);
    }
    uint64_t offset_of(uint32_t index) const {
        if (!has_slots()) return store_offset + (static_cast<uint64_t>(index) << block_shift);
        return offset_of_slot(slots()[index].load(std::memory_order_relaxed));
    }
    // Of an entry of slots(); what is not there lies nowhere.
    uint64_t offset_of_slot(uint32_t entry) const {
        return static_cast<uint64_t>(entry - 1) << block_shift;
    }
    // Where the store holds a block's content goes with the content.
    void move_place(uint32_t from, uint32_t to) noexcept {
        const uint32_t slot = slots()[from].exchange(0, std::memory_order_relaxed);
        slots()[to].store(slot, std::memory_order_relaxed);
    }
    std::atomic<uint32_t>* slots() const {
        return reinterpret_cast<std::atomic<uint32_t>*>(slot_table.address());
    }
    // Parts of a block are numbered from 0; sets of them are masks of 64 bits.
    uint32_t part_of(const void* address) const {
        const auto offset = static_cast<uint64_t>(static_cast<const std::byte*>(address) - begin());
        return static_cast<uint32_t>((offset & (block_bytes - 1)) >> part_shift);
    }
    uint64_t bytes_of_parts(uint64_t parts) const {
        return static_cast<uint64_t>(std::popcount(parts)) << part_shift;
    }
    uint64_t all_parts() const { return ~uint64_t{0} >> (64 - parts_per_block); }
    uint32_t* checksums_of(uint32_t index) const {
        return reinterpret_cast<uint32_t*>(blocks() + block_count) +
               static_cast<uint64_t>(index) * parts_per_block;
    }
    // The frame attached to a block; only for the owner of its transient state or under the frame
    // table's lock.
    Frame* frame_of(const Block& block) const {
        const uint32_t frame = block.frame.load(std::memory_order_relaxed);
        return (frame & Block::kSparseFrame) != 0
                   ? sparse_class->frame(frame & ~Block::kSparseFrame)
                   : frame_class->frame(frame);
    }

    bool has_shelf() const { return shelf.address() != nullptr; }
    std::byte* shelf_of(uint32_t index) const {
        return shelf.address() + (static_cast<uint64_t>(index) << block_shift);
    }
    bool has_slots() const { return slot_table.address() != nullptr; }
    bool is_adopted() const { return access_table.address() != nullptr; }
    std::atomic<uint8_t>& access_of(uint32_t index) const {
        return reinterpret_cast<std::atomic<uint8_t>*>(access_table.address())[index];
    }
    bool may_access(const void* address) const {
        return !is_adopted() || (access_of(index_of(address)).load(std::memory_order_relaxed) &
                                 block_access::kUsable) != 0;
    }

    // Added before the pages can be used, so that who has used one finds it counted; only that a
    // write slipped in while a block was mapped for reading is known later.
    void add_resident(uint64_t bytes) noexcept { count(resident_bytes, bytes); }
    void remove_resident(uint64_t bytes) noexcept {
        resident_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    }
    void add_dirty(uint64_t bytes) noexcept { count(dirty_bytes, bytes); }
    void remove_dirty(uint64_t bytes) noexcept {
        dirty_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    }

    void enter() noexcept { users_.fetch_add(1, std::memory_order_acq_rel); }
    // The region may be gone when this returns, so nothing of it is read after the count fell.
    void leave() noexcept {
        if (users_.fetch_sub(1, std::memory_order_acq_rel) == kClosing + 1) {
            sys::futex_wake_all(users_);
        }
    }
    // No new work is begun on a closing region.
    bool is_closing() const noexcept {
        return (users_.load(std::memory_order_seq_cst) & kClosing) != 0;
    }
    void close() noexcept { users_.fetch_or(kClosing, std::memory_order_seq_cst); }
    void wait_until_left() noexcept {
        for (uint32_t users = 0; (users = users_.load(std::memory_order_seq_cst)) != kClosing;) {
            sys::futex_wait(users_, users);
        }
    }

private:
    static constexpr uint32_t kClosing = 1u << 31;

    std::atomic<uint32_t> users_{0};  // threads and transfers inside, and kClosing
};

}  // namespace hanare::pager
