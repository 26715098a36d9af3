// SPDX-License-Identifier: Apache-2.0
//
// AccessHistory: whether the recent faults of one thread in a region were random.  A random access
// wants a part of its block, everything else wants the block.  Belongs to a thread; zero-filled
// memory is an empty history.
#pragma once

#include <array>
#include <cstdint>

namespace hanare::pager {

struct Region;

class AccessHistory {
public:
    // Where a fault was: block, and part in the region; and how many parts beside it, on one side,
    // are there.
    struct Place {
        uint32_t block;
        uint64_t part;
        uint32_t beside;
    };

    // Records a fault; `in_stream`: it continues a stream of the region; `in_run`: the parts before
    // it are there.  True when it is random.  The same place once more changes nothing.
    bool note(const Region& region, Place place, bool in_stream, bool in_run) noexcept;

    // Whether the last faults in the region were random.
    bool is_random(const Region& region) const noexcept;
    // Whether they were, and this place does not go on from the
    // last: it is elsewhere, or the very same, as of the first write after a read.
    bool expects_random(const Region& region, Place place) const noexcept;

private:
    // Faults in a row that look random before one is taken to be.
    static constexpr uint32_t kThreshold = 3;
    static constexpr uint32_t kScoreMax = 8;
    // Steps to a neighbouring part or block, or as far as the one before, after which a thread is
    // taken to go on like this.
    static constexpr uint32_t kRunMin = 2;
    // As many, of one of several that take turns.  Objects of a few pages, used by turns, are none.
    static constexpr uint32_t kTurnRunMin = 4;
    static constexpr uint32_t kTurns = 16;
    // Further steps of that kind, and random faults, that outweigh each other.
    static constexpr uint32_t kRunWeight = 2;

    // One part in so many of a block is its edge.
    static constexpr uint32_t kEdgeShare = 32;

    // What may be one of several that take turns.
    struct Turn {
        uint64_t part;
        uint32_t run;  // steps to a neighbouring part, or over what is there
    };
    struct Entry {
        const Region* region;
        Place last;
        int64_t step;  // in parts, to `last` from the one before
        uint32_t score;
        uint32_t run;
        std::array<Turn, kTurns> turns;  // the last one first
    };

    static bool goes_on(const Region& region, const Entry& entry, Place place) noexcept;
    static bool is_last_of_a_turn(const Entry& entry, uint64_t part) noexcept;
    // How many steps, this one among them, have led to the place.
    static uint32_t note_turn(Entry& entry, Place place) noexcept;
    Entry& find(const Region& region) noexcept;

    std::array<Entry, 4> entries_;
    uint32_t next_;  // entry to be reused
};

}  // namespace hanare::pager
