// SPDX-License-Identifier: Apache-2.0
//
// What the processes of a SlotTable share, at the beginning of its mapping; the slots' words
// follow.  Included by slot_table*.cpp only.  Nothing here is locked: see slot_table.cpp.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/units.hpp"
#include "store/slot_table.hpp"

namespace hanare::store {

struct alignas(kOsPageBytes) SlotTable::Shared {
    static constexpr uint64_t kChange = uint64_t{1} << 32;
    static constexpr uint32_t kNotes = 64;
    static constexpr size_t kLineBytes = 64;

    // In the low half the slots in use; in the high half how often that has changed.
    alignas(kLineBytes) std::atomic<uint64_t> count = 0;
    alignas(kLineBytes) std::atomic<uint32_t> high_water = 0;
    // Where the next look for a free run, or a free slot, begins.
    alignas(kLineBytes) std::atomic<uint32_t> run_cursor = 0;
    std::atomic<uint32_t> slot_cursor = 0;
    // The changes, plus one, after which no slot was free; 0: never.
    std::atomic<uint64_t> full_at = 0;
    // Slots, plus one, that were released lately and may be free.
    alignas(kLineBytes) std::atomic<uint32_t> released_next = 0;
    std::array<std::atomic<uint32_t>, kNotes> released = {};

    alignas(kLineBytes) std::array<std::atomic<Row>, kRows> rows = {};

    static_assert(std::atomic<Row>::is_always_lock_free);
    static_assert(std::atomic<uint64_t>::is_always_lock_free);
};

}  // namespace hanare::store
