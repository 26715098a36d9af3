// SPDX-License-Identifier: Apache-2.0
//
// StreamTable: finds sequential and strided streams, several at once and in both directions, from
// the faults of one region, and says what to read ahead and what the stream has left behind.
//
// Resident blocks do not fault, so a stream may jump over a gap; it is still the same stream if
// every block of the gap is present (the caller tells).
//
// Two faults on neighbouring blocks are a stream; three at equal distances are one with a stride.
// Such a stream may need little of each block, which only faults on parts can tell: it is served by
// parts and read ahead only once a second part of one of its blocks was needed.
//
// Any thread; a contended observation is skipped, never waited for.
#pragma once

#include <array>
#include <cstdint>

#include "sys/lock.hpp"

namespace hanare::pager {

struct Block;

class StreamTable {
public:
    static constexpr uint32_t kNone = UINT32_MAX;

    struct Advice {
        uint32_t first = 0;  // read ahead `count` blocks from here, in steps of `step`
        uint32_t count = 0;
        int32_t step = 0;
        uint32_t behind = kNone;  // a block the stream has left behind
        bool continues = false;   // the fault belongs to a stream that was known before
        bool part = false;        // of a stream that, as far as is known, needs parts of blocks
        uint64_t parts = 0;  // of the block, needed since the stream got there; none: not known
        uint64_t left_parts = 0;    // of the block that the stream has just left
        bool left_written = false;  // some of these were written to
        int32_t along = 0;  // +1 or -1: the stream needs, for sure, the neighbours on that side
    };

    // What the first fault of a possible stream means.
    enum class Begin {
        kIgnore,     // nothing: the thread accesses at random
        kCandidate,  // a stream, if another fault continues it
        kAtOnce,     // a stream
    };

    // What is known of the region.
    struct Surroundings {
        const Block* blocks;  // only read
        uint32_t block_count;
        bool may_be_sparse;     // parts of blocks can be had, and fault
        uint32_t depth_blocks;  // read ahead at most
        uint32_t quick_blocks;  // of these as soon as a stream is found
        bool by_parts;          // how streams are served: they jump over sparse blocks
        uint32_t parts_per_block = 1;
        uint32_t first_depth = 4;  // read ahead as soon as a stream is found
        bool by_chance =
            false;  // the thread's last faults were random: only what is certain counts
        uint32_t shared_blocks = UINT32_MAX;  // read ahead at most by all streams together
        uint32_t beside = 0;  // parts beside the one that is wanted, on one side, that are there
    };

    // Records a fault on a part of a block.
    Advice observe(uint32_t block, uint32_t part, bool write, const Surroundings& around,
                   Begin begin) noexcept;

private:
    static constexpr uint32_t kStreams = 32;
    static constexpr uint32_t kLag = 8;       // blocks a stream keeps behind its head
    static constexpr uint32_t kGapMax = 256;  // present blocks a stream may jump over
    // One part in so many of a block is its edge.
    static constexpr uint32_t kEdgeShare = 32;

    struct Stream {
        uint32_t head = 0;     // last faulted block
        int64_t place = 0;     // of that fault: its part, counted from the begin of the region
        int64_t stride = 0;    // parts from step to step, if these are larger than a block
        uint64_t parts = 0;    // of that, which were needed since it is the head
        bool written = false;  // some of these were written to
        int32_t step = 0;      // from block to block; 0 for a stream of one fault
        bool dense = true;     // needs whole blocks; false: not known to, its stride being above 1
        uint32_t depth = 0;    // current read-ahead distance
        uint32_t ahead = 0;    // blocks from head on that were asked for already
        uint64_t stamp = 0;    // of the last fault; 0: unused entry
        uint32_t lag_count = 0;
        std::array<uint32_t, kLag> lag{};  // ring of the last faulted blocks
    };

    Advice observe_locked(uint32_t block, uint32_t part, bool write, const Surroundings& around,
                          Begin begin) noexcept HANARE_REQUIRES(lock_);
    // The stream that goes on with `block`; `distance`: steps from its head, 0 for the head itself.
    Stream* match(uint32_t block, uint32_t part, const Surroundings& around, Begin begin,
                  uint32_t& distance) noexcept HANARE_REQUIRES(lock_);
    // Whether a stream of neighbours would come to that part of a block, `delta` blocks from its
    // head: at first to the edge of the block, to where what is there from there on ends, or to
    // where it was in the last one; then to the neighbours of what it has needed, or of what came
    // with that.
    static bool comes_to(const Stream& stream, int64_t delta, uint32_t part,
                         const Surroundings& around) noexcept;
    bool is_live(const Stream& stream) const noexcept HANARE_REQUIRES(lock_);
    // Streams that take turns at present, one at least.
    uint32_t count_in_turn() const noexcept HANARE_REQUIRES(lock_);
    // A new stream, if two of one fault each and this one lie at equal distances.
    Stream* begin_stride(uint32_t block, int64_t place, bool may_be_sparse) noexcept
        HANARE_REQUIRES(lock_);
    Stream* begin_single(uint32_t block, int64_t place) noexcept HANARE_REQUIRES(lock_);
    Stream* replace_oldest(uint32_t block, int64_t place) noexcept HANARE_REQUIRES(lock_);
    // Moves the head; returns the block that is now far enough behind, or kNone.
    static uint32_t advance(Stream& stream, uint32_t block, int64_t place) noexcept;
    // The blocks between the head and what is `steps` steps from it.
    static bool all_present(uint32_t head, uint32_t steps, int32_t step, const Block* blocks,
                            bool or_sparse) noexcept;

    sys::RankedLock lock_{sys::LockRank::kStreams};
    uint64_t clock_ HANARE_GUARDED_BY(lock_) = 0;
    std::array<Stream, kStreams> streams_ HANARE_GUARDED_BY(lock_);
};

}  // namespace hanare::pager
