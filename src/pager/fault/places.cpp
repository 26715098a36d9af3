// SPDX-License-Identifier: Apache-2.0
//
// Pager, where in the store a block's content lies, for regions whose blocks have no fixed place
// there: slots are given when a block is first written back, beside those of its neighbours if it
// can be.  What other processes hold, too, since a fork, is theirs: a block that is written gets a
// slot of its own.
#include <algorithm>
#include <array>
#include <bit>

#include "pager/fault/checksum.hpp"
#include "pager/fault/pager.hpp"
#include "pager/fault/parts.hpp"

namespace hanare::pager {

using store::SlotTable;

// Of this process.
class Pager::SlotUse final : public store::SlotUsers {
public:
    explicit SlotUse(Pager& pager) noexcept : pager_(pager) {}

    bool is_alone() noexcept override { return pager_.slots_->is_alone(); }
    uint64_t unit_bytes() const noexcept override { return pager_.slot_bytes_; }
    // A slot that is held by a thread that is still about to take it has no content yet, or
    // another process's.  Who sees it held here sees that thread's note, too.
    Content content_of(uint64_t offset, uint64_t bytes) noexcept override {
        const uint64_t end = offset + bytes;
        Content content = Content::kNone;
        for (uint64_t slot = offset / pager_.slot_bytes_; slot * pager_.slot_bytes_ < end; ++slot) {
            const auto number = static_cast<uint32_t>(slot);
            if (!pager_.slots_->is_held(number)) continue;
            if (is_being_taken(number)) return Content::kChanging;
            content = Content::kKept;
        }
        return content;
    }

private:
    bool is_being_taken(uint32_t slot) const noexcept {
        if (pager_.unnamed_slots_.load() != 0) return true;
        return std::ranges::any_of(pager_.slots_being_taken_,
                                   [slot](const auto& each) { return each.load() == slot + 1; });
    }

    Pager& pager_;
};

bool Pager::tend_store() noexcept {
    if (slots_ == nullptr) return false;
    SlotUse users(*this);
    return store_.tend(users);
}

// The entry of Region::slots(), or 0: the store is full.
uint32_t Pager::take_slot(const Region& region, uint32_t index) noexcept {
    for (std::atomic<uint32_t>& note : slots_being_taken_) {
        uint32_t none = 0;
        if (!note.compare_exchange_strong(none, kSlotUnknown)) continue;
        const uint32_t entry = take_new_slot(region, index, note);
        note.store(0);
        return entry;
    }
    std::atomic<uint32_t> unheard{0};
    unnamed_slots_.fetch_add(1);
    const uint32_t entry = take_new_slot(region, index, unheard);
    unnamed_slots_.fetch_sub(1);
    return entry;
}

// Which one it is, is not known before it is held.
template <typename Allocate>
uint32_t Pager::allocate_slot(std::atomic<uint32_t>& being_taken, Allocate allocate) noexcept {
    unnamed_slots_.fetch_add(1);
    const uint32_t slot = allocate();
    being_taken.store(slot == SlotTable::kNoSlot ? kSlotUnknown : slot + 1);
    unnamed_slots_.fetch_sub(1);
    return slot;
}

uint32_t Pager::take_new_slot(const Region& region, uint32_t index,
                              std::atomic<uint32_t>& being_taken) noexcept {
    uint32_t preferred = SlotTable::kAnySlot;
    const auto slot_of = [&](uint32_t block) {
        return region.slots()[block].load(std::memory_order_relaxed);
    };
    if (index > 0 && slot_of(index - 1) != 0) {
        preferred = slot_of(index - 1);  // the slot behind that one
    } else if (index + 1 < region.block_count && slot_of(index + 1) > 1) {
        preferred = slot_of(index + 1) - 2;
    }
    uint32_t slot = take_covered_slot(preferred, region.block_shift, being_taken);
    if (slot == SlotTable::kNoSlot && slots_->sweep() > 0) {
        slot = take_covered_slot(preferred, region.block_shift, being_taken);
    }
    if (slot == SlotTable::kNoSlot) return 0;
    store_.renew(uint64_t{slot} << region.block_shift, region.block_bytes);
    return slot + 1;
}

// One that the store has room for.
uint32_t Pager::take_covered_slot(uint32_t preferred, uint32_t block_shift,
                                  std::atomic<uint32_t>& being_taken) noexcept {
    uint32_t slot = allocate_slot(being_taken, [&] { return slots_->allocate(preferred); });
    while (slot != SlotTable::kNoSlot) {
        const hanare_status status = store_.cover((uint64_t{slot} + 1) << block_shift);
        if (status == HANARE_STATUS_OK) break;
        if (slots_->drop(slot)) slots_->release(slot);
        if (status != HANARE_STATUS_STORE_FULL) return SlotTable::kNoSlot;
        slot = allocate_slot(being_taken, [&] { return slots_->allocate_below(slot); });
    }
    return slot;
}

// The caller owns the block's transient state and is about to write its frame.
hanare_status Pager::own_place(Region& region, const Frame& frame) noexcept {
    std::atomic<uint32_t>& place = region.slots()[frame.block];
    const uint32_t before = place.load(std::memory_order_relaxed);
    if (before != 0 && !slots_->is_shared(before - 1)) return HANARE_STATUS_OK;
    const uint32_t after = take_slot(region, frame.block);
    if (after == 0) return HANARE_STATUS_STORE_FULL;
    if (before != 0) {
        // What is not written now goes along.
        const uint64_t kept =
            frame.sparse ? region.block(frame.block).stored_parts & ~frame.dirty : 0;
        const hanare_status status = copy_parts(
            region, frame.block, kept, region.offset_of_slot(before), region.offset_of_slot(after));
        if (status != HANARE_STATUS_OK) {
            if (slots_->drop(after - 1)) slots_->release(after - 1);
            return status;
        }
    }
    place.store(after, std::memory_order_relaxed);
    if (before != 0 && slots_->drop(before - 1)) slots_->release(before - 1);
    return HANARE_STATUS_OK;
}

hanare_status Pager::copy_parts(Region& region, uint32_t index, uint64_t parts, uint64_t from,
                                uint64_t to) noexcept {
    if (parts == 0) return HANARE_STATUS_OK;
    const BufferPool::Buffer buffer(copies_);
    std::array<uint32_t, kPartsMax> copied;
    hanare_status status = HANARE_STATUS_OK;
    for (uint64_t left = parts; left != 0; left &= left - 1) {
        const auto part = static_cast<uint32_t>(std::countr_zero(left));
        const uint64_t start = part * region.part_bytes;
        status = store_.read(from + start, buffer.memory(), region.part_bytes);
        if (status != HANARE_STATUS_OK) break;
        if (has_checksums_ && part_checksum(buffer.memory(), region.part_bytes, from + start) !=
                                  region.checksums_of(index)[part]) {
            count(region.counters.checksum_errors);
            return HANARE_STATUS_CORRUPT;
        }
        status = store_.write(to + start, buffer.memory(), region.part_bytes);
        if (status != HANARE_STATUS_OK) break;
        if (!has_checksums_) continue;
        copied[part] = part_checksum(buffer.memory(), region.part_bytes, to + start);
    }
    if (status != HANARE_STATUS_OK) {
        count(region.counters.store_errors);
        return status;
    }
    for (; has_checksums_ && parts != 0; parts &= parts - 1) {
        const auto part = static_cast<uint32_t>(std::countr_zero(parts));
        region.checksums_of(index)[part] = copied[part];
    }
    return HANARE_STATUS_OK;
}

// The caller owns the block's transient state, and the store holds nothing of it any more.
void Pager::give_up_place(Region& region, uint32_t index) noexcept {
    if (!region.has_slots()) return;
    const uint32_t place = region.slots()[index].exchange(0, std::memory_order_relaxed);
    if (place != 0 && slots_->drop(place - 1)) slots_->release(place - 1);
}

}  // namespace hanare::pager
