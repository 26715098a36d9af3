// SPDX-License-Identifier: Apache-2.0
//
// Slots: allocation and release.  Rows and the dead are in slot_table_rows.cpp.
//
// A slot's word goes from 0 to the taker's bit by compare-and-swap, and that alone decides.  All
// other counters only help: they may be behind when a process is killed, and nothing but speed and
// Usage depends on them, except that high_water is raised before a slot is taken, so that who looks
// for the bits of a dead process finds all of them below it.
#include "store/slot_table.hpp"

#include <algorithm>
#include <new>

#include "base/assert.hpp"
#include "base/units.hpp"
#include "store/slot_table_shared.hpp"

namespace hanare::store {

namespace {

// Looked at per allocation before a fresh run is taken.
constexpr uint32_t kRunProbes = 16;
// When everything has been looked at in vain while others released slots.
constexpr uint32_t kScansMax = 4;

}  // namespace

Result<SlotTable> SlotTable::create(uint32_t capacity, int lock_file, Fence fence, Spread spread) {
    if (capacity == 0 || capacity > kCapacityMax) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "%u slots in a store: 1 to %u are possible",
                    capacity, kCapacityMax);
    }
    const size_t bytes =
        round_up(sizeof(Shared) + size_t{capacity} * sizeof(std::atomic<uint64_t>), kOsPageBytes);
    HANARE_TRY_ASSIGN(auto memory, sys::Mapping::reserve_shared(bytes));
    SlotTable table(std::move(memory), capacity, lock_file);
    table.fence_ = fence;
    table.spread_ = spread;
    const std::optional<uint32_t> row = table.claim_row();
    if (!row) return fail(HANARE_STATUS_INTERNAL, "another slot table uses the locks of this file");
    table.become_child(*row);
    return table;
}

SlotTable::SlotTable(sys::Mapping memory, uint32_t capacity, int lock_file) noexcept
    : memory_(std::move(memory)),
      shared_(new(memory_.address()) Shared),
      masks_(reinterpret_cast<std::atomic<uint64_t>*>(memory_.address() + sizeof(Shared))),
      capacity_(capacity),
      lock_file_(lock_file) {}

uint32_t SlotTable::allocate(uint32_t preferred) noexcept {
    if (preferred < capacity_ && take(preferred)) return preferred;
    uint32_t slot = is_spread() ? take_below(usage().high_water) : kNoSlot;
    if (slot == kNoSlot) slot = take_used_run();
    if (slot == kNoSlot) slot = take_fresh_run();
    if (slot == kNoSlot) slot = take_any();
    return slot;
}

uint32_t SlotTable::allocate_below(uint32_t end) noexcept {
    const uint32_t slot = take_noted();
    if (slot != kNoSlot && slot < end) return slot;
    if (slot != kNoSlot) set_free(slot, 1);
    return take_below(std::min(end, capacity_));
}

bool SlotTable::drop(uint32_t slot) noexcept {
    uint64_t mask = masks_[slot].load(std::memory_order_acquire);
    HANARE_ASSERT((mask & own_) != 0);
    // Alone, it keeps its bit: nobody else can take the slot, and whoever sweeps finds it.
    while (mask != own_) {
        if (masks_[slot].compare_exchange_weak(mask, mask & ~own_, std::memory_order_acq_rel)) {
            return false;
        }
    }
    return true;
}

void SlotTable::release(uint32_t slot) noexcept {
    HANARE_ASSERT((masks_[slot].load(std::memory_order_relaxed) & own_) != 0);
    set_free(slot, 1);
}

bool SlotTable::is_shared(uint32_t slot) const noexcept {
    return (masks_[slot].load(std::memory_order_acquire) & ~own_) != 0;
}

SlotTable::Usage SlotTable::usage() const noexcept {
    // Below 0 for a moment when a release is counted before the allocation.
    const auto used = static_cast<int32_t>(shared_->count.load(std::memory_order_relaxed));
    return {.used = std::min(static_cast<uint32_t>(std::max(used, 0)), capacity_),
            .capacity = capacity_,
            .high_water = shared_->high_water.load(std::memory_order_relaxed)};
}

bool SlotTable::take(uint32_t slot) noexcept {
    uint64_t mask = masks_[slot].load(std::memory_order_relaxed);
    if (mask != 0) return false;
    raise_high_water(slot);
    if (!masks_[slot].compare_exchange_strong(mask, own_, std::memory_order_acq_rel)) return false;
    shared_->count.fetch_add(Shared::kChange + 1, std::memory_order_acq_rel);
    return true;
}

void SlotTable::raise_high_water(uint32_t slot) noexcept {
    uint32_t seen = shared_->high_water.load(std::memory_order_acquire);
    while (seen <= slot &&
           !shared_->high_water.compare_exchange_weak(seen, slot + 1, std::memory_order_acq_rel)) {
    }
}

// Too far, where that costs.
bool SlotTable::is_spread() const noexcept {
    if (spread_ != Spread::kDense) return false;
    constexpr uint32_t kSpareSlotsMin = 4 * kRunSlots;
    const Usage now = usage();
    return now.high_water > now.used + std::max(now.used / 4, kSpareSlotsMin);
}

bool SlotTable::is_free_run(uint32_t run) const noexcept {
    const std::atomic<uint64_t>* const first = masks_ + size_t{run} * kRunSlots;
    return std::all_of(first, first + kRunSlots,
                       [](const auto& mask) { return mask.load(std::memory_order_relaxed) == 0; });
}

// Below the high-water mark, so that the table and the file stay short; but not where nearly
// everything is in use and fresh ones are to be had.
uint32_t SlotTable::take_used_run() noexcept {
    const Usage now = usage();
    const uint32_t runs = now.high_water / kRunSlots;
    const bool has_fresh = runs < capacity_ / kRunSlots;
    if (runs == 0 || (has_fresh && now.used > now.high_water - now.high_water / 8)) return kNoSlot;
    const uint32_t start = shared_->run_cursor.load(std::memory_order_relaxed);
    const uint32_t probes = std::min(runs, kRunProbes);
    uint32_t run = start < runs ? start : 0;
    for (uint32_t i = 0; i < probes; ++i) {
        const uint32_t next = run + 1 < runs ? run + 1 : 0;
        if (is_free_run(run) && take(run * kRunSlots)) {
            shared_->run_cursor.store(next, std::memory_order_relaxed);
            return run * kRunSlots;
        }
        run = next;
    }
    shared_->run_cursor.store(run, std::memory_order_relaxed);
    return kNoSlot;
}

uint32_t SlotTable::take_fresh_run() noexcept {
    for (;;) {
        const uint32_t high_water = shared_->high_water.load(std::memory_order_acquire);
        const uint32_t run = (high_water + kRunSlots - 1) / kRunSlots;
        if (run >= capacity_ / kRunSlots) return kNoSlot;
        // Where it fails another has taken it, and the mark is higher now.
        if (take(run * kRunSlots)) return run * kRunSlots;
    }
}

// Where nearly everything is in use, this saves looking through all for the few that are free.
uint32_t SlotTable::take_noted() noexcept {
    for (std::atomic<uint32_t>& note : shared_->released) {
        if (note.load(std::memory_order_relaxed) == 0) continue;
        const uint32_t noted = note.exchange(0, std::memory_order_relaxed);
        if (noted != 0 && take(noted - 1)) return noted - 1;
    }
    return kNoSlot;
}

uint32_t SlotTable::take_any() noexcept {
    for (uint32_t scan = 0; scan < kScansMax; ++scan) {
        const uint64_t changes = shared_->count.load(std::memory_order_acquire) / Shared::kChange;
        // Nothing has changed since somebody has looked at every slot.
        if (shared_->full_at.load(std::memory_order_relaxed) == changes + 1) return kNoSlot;
        if (const uint32_t slot = take_noted(); slot != kNoSlot) return slot;
        if (const uint32_t slot = take_below(capacity_); slot != kNoSlot) return slot;
        shared_->full_at.store(changes + 1, std::memory_order_relaxed);
    }
    return kNoSlot;
}

uint32_t SlotTable::take_below(uint32_t end) noexcept {
    const uint32_t cursor = shared_->slot_cursor.load(std::memory_order_relaxed);
    const uint32_t start = cursor < end ? cursor : 0;
    for (uint32_t i = 0; i < end; ++i) {
        const uint32_t slot = i < end - start ? start + i : i - (end - start);
        if (!take(slot)) continue;
        shared_->slot_cursor.store(slot + 1 < end ? slot + 1 : 0, std::memory_order_relaxed);
        return slot;
    }
    return kNoSlot;
}

// Slots that only the process holds.  Counted afterwards: where it is killed in between, a table
// found full looks full until the next change; sweep() makes one.
uint32_t SlotTable::set_free(uint32_t first, uint32_t count) noexcept {
    uint32_t freed = 0;
    for (uint32_t slot = first; slot < first + count; ++slot) {
        if (masks_[slot].fetch_and(~own_, std::memory_order_acq_rel) == own_) ++freed;
    }
    shared_->count.fetch_add(Shared::kChange - freed, std::memory_order_acq_rel);
    const uint32_t note = shared_->released_next.fetch_add(1, std::memory_order_relaxed);
    shared_->released[note % Shared::kNotes].store(first + 1, std::memory_order_relaxed);
    return freed;
}

}  // namespace hanare::store
