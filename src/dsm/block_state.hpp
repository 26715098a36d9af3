// SPDX-License-Identifier: Apache-2.0
//
// What a task knows of a block of shared memory, in one word that threads change by
// compare-and-swap.
//
// Of a block whose home is here nothing is recorded as long as nobody else has a copy: it is
// writable.  A copy that is given away makes it kShared, and protects it, so that the first write
// after that shows.  Where it cannot be protected then it is kServed: what was given away may be
// old, which the next release says to others (a notice), and protects the block.
#pragma once

#include <cstdint>

namespace hanare::dsm {

struct BlockState {
    static constexpr uint32_t kAbsent = 0;  // what the program may do without a fault
    static constexpr uint32_t kRead = 1;
    static constexpr uint32_t kWrite = 2;
    static constexpr uint32_t kRights = 3;

    static constexpr uint32_t kBusy = 1u << 2;       // a thread is changing it; others wait
    static constexpr uint32_t kDirty = 1u << 3;      // written to, and listed
    static constexpr uint32_t kShared = 1u << 4;     // others have copies without a notice
    static constexpr uint32_t kServed = 1u << 5;     // one was given away while it was writable
    static constexpr uint32_t kHomeKnown = 1u << 6;  // the upper half is the home's rank
    static constexpr uint32_t kHomeHere = 1u << 7;
    // In lists, whatever has become of it since: of dirty blocks, of what was fetched, of copies
    // that were dropped.
    static constexpr uint32_t kListed = 1u << 8;
    static constexpr uint32_t kFetched = 1u << 9;
    static constexpr uint32_t kDropped = 1u << 10;

    // Of what has moved (home_moves.cpp): this task owes a notice for what it wrote before; its
    // home keeps it, so that nobody asks again; it was here, and this task has not had a copy from
    // the new home since, which may have the data only from here still.
    static constexpr uint32_t kOwed = 1u << 11;
    static constexpr uint32_t kFixed = 1u << 12;
    static constexpr uint32_t kInTransit = 1u << 13;
    // Of a block that is at home here, instead of kFixed: it is written to, and fetched again by
    // who reads it, in turns.  So, where it is not steady, it is protected as soon as it is
    // released, and what is fetched then needs no second notice.
    static constexpr uint32_t kInTurns = kFixed;
    // Of a block that is at home here, instead of kInTransit: it stays writable, and what it held
    // at the last release is kept, for others and to see whether it was written to
    // (home_steady.cpp).
    static constexpr uint32_t kSteady = kInTransit;
    // How often it has moved, as its home knows.
    static constexpr uint32_t kMovesShift = 14;
    static constexpr uint32_t kMovesMax = 3;
    // Of a block that is elsewhere, instead of that number: it was at home here, and the new home,
    // or who was about to read it here, may do so still.
    static constexpr uint32_t kWasHome = 1u << kMovesShift;

    static constexpr uint32_t rights(uint32_t state) noexcept { return state & kRights; }
    static constexpr uint32_t home(uint32_t state) noexcept { return state >> 16; }
    static constexpr uint32_t with_home(uint32_t state, uint32_t rank, bool is_here) noexcept {
        return (state & 0xffff & ~kHomeHere) | kHomeKnown | (is_here ? kHomeHere : 0) | rank << 16;
    }
    static constexpr bool is_elsewhere(uint32_t state) noexcept {
        return (state & (kHomeKnown | kHomeHere)) == kHomeKnown;
    }
    // Of a block that is elsewhere: whether others may read this task's memory of it.
    static constexpr bool is_needed(uint32_t state) noexcept {
        return (state & (kInTransit | kWasHome)) != 0;
    }
    static constexpr bool is_steady(uint32_t state) noexcept {
        return (state & (kHomeHere | kSteady)) == (kHomeHere | kSteady);
    }
    static constexpr uint32_t moves(uint32_t state) noexcept {
        return state >> kMovesShift & kMovesMax;
    }
    static constexpr uint32_t with_moves(uint32_t state, uint32_t moves) noexcept {
        return (state & ~(kMovesMax << kMovesShift)) | moves << kMovesShift;
    }
    static constexpr uint32_t with_rights(uint32_t state, uint32_t rights) noexcept {
        return (state & ~kRights) | rights;
    }
};

}  // namespace hanare::dsm
