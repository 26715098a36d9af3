// SPDX-License-Identifier: Apache-2.0
#include "job/acknowledgements.hpp"

#include <cstddef>

namespace hanare::job {
namespace {

void make_fetch(fabric::Operation& operation, const Peer::Way& way, fabric::FetchOp op,
                uint64_t offset, uint64_t operand, uint64_t deadline_ns) {
    operation.kind = fabric::Kind::kFetch;
    operation.capability = way.control.words;
    operation.fetch_op = op;
    operation.offset = offset;
    operation.operand = operand;
    operation.deadline_ns = deadline_ns;
}

bool is_status(int32_t value) noexcept {
    switch (value) {
#define HANARE_CASE(name, number, text) case number:
        HANARE_STATUS_MAP(HANARE_CASE)
#undef HANARE_CASE
        return true;
        default: return false;
    }
}

}  // namespace

uint64_t Failure::word() const noexcept {
    return is_none() ? 0
                     : uint64_t{static_cast<uint32_t>(-static_cast<int32_t>(status))} << 32 | rank;
}

Failure Failure::of(uint64_t word) noexcept {
    if (word == 0) return {};
    const auto number = -static_cast<int32_t>(word >> 32);
    const bool is_known = number != 0 && is_status(number);
    return {is_known ? static_cast<hanare_status>(number) : HANARE_STATUS_CORRUPT,
            static_cast<uint32_t>(word)};
}

// ---- slots

void SlotTable::reclaim() {
    std::erase_if(late_, [this](const Late& late) {
        const uint32_t bits = words_.slots[late.slot].bits.load(std::memory_order_acquire);
        if ((bits & late.expected) != late.expected) return false;
        is_used_[late.slot] = false;
        return true;
    });
}

Result<uint32_t> SlotTable::take() {
    const std::lock_guard guard(lock_);
    reclaim();
    for (uint32_t slot = 0; slot < ControlWords::kSlots; ++slot) {
        if (is_used_[slot]) continue;
        is_used_[slot] = true;
        words_.slots[slot].failure.store(0);
        words_.slots[slot].bits.store(0);
        return slot;
    }
    return fail(HANARE_STATUS_LIMIT, "acknowledgements of %u multicasts are outstanding already",
                ControlWords::kSlots);
}

void SlotTable::give_back(uint32_t slot, uint32_t expected) noexcept {
    const std::lock_guard guard(lock_);
    late_.push_back({slot, expected});
    reclaim();
}

// ---- giving one

Acknowledgement::Acknowledgement(const Peer::Way& way, const AcknowledgementPlace& place,
                                 const Failure& failure, uint64_t deadline_ns)
    : link_(*way.link) {
    using fabric::FetchOp;
    const uint64_t slot =
        offsetof(ControlWords, slots) + uint64_t{place.slot} * sizeof(AcknowledgementSlot);
    if (!failure.is_none()) {
        make_fetch(failure_, way, FetchOp::kCompareSwap,
                   slot + offsetof(AcknowledgementSlot, failure), failure.word(), deadline_ns);
        link_.post(failure_);
    }
    make_fetch(bit_, way, FetchOp::kOr, slot + offsetof(AcknowledgementSlot, bits),
               uint64_t{1} << place.index, deadline_ns);
    bit_.width = sizeof(uint32_t);
    if (!place.is_for_courier) make_waking(bit_);
    link_.post(bit_);
    last_ = &bit_;
    if (!place.is_for_courier) return;
    make_fetch(bell_, way, FetchOp::kAdd, offsetof(ControlWords, forward_bell), 1, deadline_ns);
    bell_.width = sizeof(uint32_t);
    make_waking(bell_);
    link_.post(bell_);
    last_ = &bell_;
}

// In order: when the last one is done all are, but for those whose deadline has passed.
hanare_status Acknowledgement::finish() noexcept {
    link_.wait(*last_);
    link_.wait(bit_);
    if (failure_.kind == fabric::Kind::kFetch) link_.wait(failure_);
    return bit_.status();
}

}  // namespace hanare::job
