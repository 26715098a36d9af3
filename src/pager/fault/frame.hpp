// SPDX-License-Identifier: Apache-2.0
//
// Frames: local memory for blocks.  Each block size in use has a FrameClass: a reserved range of
// addresses (the arena) cut into slots of one block.  A frame is a slot and its descriptor.  While
// its block is mapped the slot's pages are in the region and the slot is a hole; they return to it
// when the block is withdrawn.  Frames whose blocks are mapped may exchange their slots meanwhile
// (runs.cpp).  The pool's budget counts pages wherever they are.
//
// With an engine that copies, a slot would lose its pages at every installation and get new ones at
// every withdrawal.  A few spare slots (SpareSlots) hand them on.
//
// Nothing here is synchronised; FrameTable's lock protects lists and counts, and the owner of a
// block's transient state owns the frame attached to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/intrusive_list.hpp"
#include "pager/fault/part_use.hpp"
#include "store/store.hpp"
#include "sys/memory.hpp"

namespace hanare::pager {

struct Region;
struct FrameClass;
struct FlushJob;

// Which list a frame is in.
enum class FrameQueue : uint8_t {
    kNone,       // attached to a block in a transient state, or to a pinned one
    kFree,       // no block; memory populated
    kBare,       // no block, no memory
    kProbation,  // mapped; the first to be evicted, in order of arrival
    kProtected,  // mapped; used again after it was withdrawn once
    kDrop,       // mapped; behind a stream, the last one is evicted first
    kInactive,   // staged after withdrawal; a second chance before the frame is reused
    kHidden,  // withdrawn to see whether it is used again: staged and dirty, or parts of it shelved
    kAhead,   // staged by read-ahead
};

struct Frame;

// What the parts of a sparse block tell of the streams that use it (StreamDensity).
enum class StreamUse : uint8_t {
    kNone,    // nothing: random accesses began it
    kParts,   // that they pass it through, once they have
    kSample,  // that, and how much of it they have used
};

// The frame's transfer; completions lead back to the frame.
struct FrameIo : store::IoRequest {
    Frame* frame = nullptr;
};

// Where a frame goes when its block has been written back or was clean.
enum class Park : uint8_t {
    kFree,          // the block becomes absent
    kSecondChance,  // staged, and protected if it is used again
    kKeep,          // staged
};

struct Frame : ListLink {
    Region* region = nullptr;  // nullptr when free
    FrameClass* frame_class = nullptr;
    std::byte* memory = nullptr;  // the slot; now and then another one
    uint32_t index = 0;           // in the class
    uint32_t slot_owner = 0;      // who has the slot of that number; not kept for engines that copy
    uint32_t block = 0;           // in the region
    uint64_t bytes = 0;           // of pages that it counts for: those of held() if sparse
    FrameQueue queue = FrameQueue::kNone;
    uint64_t counted_bytes = 0;       // in the queue's sum
    uint64_t given_before_bytes = 0;  // by the table in all, when it came into the queue
    bool bare = true;                 // the slot has no pages
    // Populated together with so many frames in all, this one and those that follow in the arena;
    // 0 for a frame that is created alone.
    uint32_t chunk_frames = 0;
    bool is_tested = false;   // on probation, was protected: hidden before it leaves, clean or not
    bool zeroed = false;      // all zeros, not written to since it was populated
    bool unverified = false;  // read ahead: neither compared with its checksums nor completed
    // While it leaves together with others: the first of them.  There: how many have not left, and
    // a list of those that are free once all have.
    Frame* run = nullptr;
    uint32_t run_left = 0;
    Frame* run_freed = nullptr;
    Frame* run_next = nullptr;
    bool came_along = false;  // mapped before its fault; also read by others, as a hint
    // The keeper's, while it transfers the frame.
    bool in_keeper = false;
    Park park = Park::kFree;
    FlushJob* job = nullptr;  // the flush that waits for this write, or nullptr
    FrameIo io;

    // Of a sparse block; the owner's.  Masks of parts.
    bool sparse = false;               // has no slot
    StreamUse use = StreamUse::kNone;  // also set by others, as a hint
    uint64_t present = 0;              // mapped
    uint64_t shelved = 0;     // withdrawn to the region's shelf, to see whether they are used again
    uint64_t dirty = 0;       // of both; the others equal the store or are zeros
    bool counts_use = false;  // parts come back one by one in this turn, so that they are counted
    bool tests_use = false;   // the block was in dense use
    bool tests_fill = false;  // a stream came to the block as a whole (stream_fill.hpp)
    uint32_t parts_passed = 0;  // by a stream, when the block's last turn ended
    uint64_t neighbours = 0;    // of those on the shelf: came with other parts, and not used yet
    uint64_t read_only_at_first = 0;  // read from the store for an access that did not write
    PartUse use_of_parts;
    uint64_t leftovers = 0;  // of what came back from the shelf, the last generation (Leftovers)
    uint64_t leaving = 0;    // during an eviction: those that go
    uint64_t leaving_dirty = 0;  // of these, those that were dirty
    uint64_t unwritten = 0;      // while dirty parts are written back: those still to be written

    // Where a sparse block has content in memory.
    uint64_t held() const { return present | shelved; }
};

// Slots without a frame, and so without content: the first `filled` mostly have pages to hand on.
struct SpareSlots {
    static constexpr uint32_t kMax = 32;

    uint32_t count = 0;
    uint32_t filled = 0;
    std::array<std::byte*, kMax> slots{};
};

// Frames of one block size, or (block_bytes 0, no arena) of sparse blocks of any size.  `capacity`
// slots are reserved, and the spare ones behind them; `created` of them have descriptors.
struct FrameClass {
    uint64_t block_bytes = 0;
    uint32_t capacity = 0;
    uint32_t created = 0;
    uint32_t regions = 0;  // with blocks of this size
    uint64_t blocks = 0;   // of those regions
    SpareSlots spare;
    sys::Mapping arena;
    sys::Mapping descriptors;
    IntrusiveList<Frame> free;  // last in, first out: the memory is still in the cache
    IntrusiveList<Frame> bare;

    bool open() const { return descriptors.address() != nullptr; }
    uint64_t free_bytes() const { return free.size() * block_bytes; }
    Frame* frame(uint32_t index) const {
        return reinterpret_cast<Frame*>(descriptors.address()) + index;
    }
};

// Block sizes 4 KiB to 4 MiB: 11 powers of two.
inline constexpr uint32_t kFrameClasses = 11;
inline constexpr uint64_t kBlockBytesMin = 4096;
// Blocks from this size on are worth contiguous memory: their frames are created by huge pages.
inline constexpr uint64_t kContiguousBytesMin = 64 * 1024;
inline constexpr uint64_t kBlockBytesMax = kBlockBytesMin << (kFrameClasses - 1);
// A block has up to 64 parts of at least one OS page.  Blocks below this size are not divided: it
// would save little.
inline constexpr uint32_t kPartsMax = 64;
inline constexpr uint64_t kDividedBytesMin = 32 * 1024;
inline constexpr uint64_t kPartBytesMax = kBlockBytesMax / kPartsMax;
// A single instruction can touch several blocks at once; fewer frames could keep it from ever
// finishing.
inline constexpr uint64_t kFramesMin = 16;

}  // namespace hanare::pager
