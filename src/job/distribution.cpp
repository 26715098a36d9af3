// SPDX-License-Identifier: Apache-2.0
#include "job/distribution.hpp"

#include <algorithm>
#include <bit>

namespace hanare::job {

Distribution::Distribution(Communicator& communicator, SlotTable& slots, Plan plan,
                           const std::vector<Tree::Child>& children)
    : communicator_(communicator), slots_(slots), plan_(std::move(plan)) {
    uint32_t index = 0;
    for (const Tree::Child& child : children) {
        branches_.push_back(std::make_unique<Branch>());
        branches_.back()->child = child;
        if (child.tasks > 1) branches_.back()->index = index++;
    }
}

Distribution::~Distribution() {
    if (slot_) slots_.give_back(*slot_, told_);
}

void Distribution::send() {
    const bool needs_slot =
        std::ranges::any_of(branches_, [this](const auto& each) { return has_children(*each); });
    if (needs_slot) {
        const auto slot = slots_.take();
        if (!slot) return failure_.note(slot.error().status, communicator_.rank());
        slot_ = *slot;
    }
    for (const auto& branch : branches_) begin(*branch);
    for (const auto& branch : branches_) finish(*branch);
}

// The notice goes right behind the put.  If the put is refused the child will know, since it checks
// the same capability before it passes anything on.
void Distribution::begin(Branch& branch) {
    const uint32_t rank = branch.child.rank;
    const auto way = communicator_.way_to(rank, plan_.deadline_ns);
    if (!way) return failure_.note(way.error().status, rank);
    branch.way = *way;
    branch.put.kind = fabric::Kind::kPut;
    branch.put.capability = plan_.window->keys[rank];
    branch.put.offset = plan_.offset;
    branch.put.source = plan_.data;
    branch.put.deadline_ns = plan_.deadline_ns;
    branch.way->link->post(branch.put);
    if (!has_children(branch)) return;
    const bool is_endless = plan_.deadline_ns == kNoDeadline;
    const Forward forward = {
        .window = plan_.window->number,
        .root = plan_.root,
        .arity = plan_.arity,
        .parent = communicator_.rank(),
        .slot = *slot_,
        .index = branch.index,
        .is_for_courier = plan_.is_for_courier ? 1u : 0u,
        .timeout_ms =
            is_endless ? UINT32_MAX : static_cast<uint32_t>(ms_until(plan_.deadline_ns, INT32_MAX)),
        .offset = plan_.offset,
        .bytes = plan_.data.size()};
    told_ |= 1u << branch.index;
    branch.notice.emplace(*branch.way, Notice::To::kCourier, std::as_bytes(std::span(&forward, 1)),
                          plan_.deadline_ns);
}

void Distribution::finish(Branch& branch) {
    if (branch.way == nullptr) return;
    const uint32_t rank = branch.child.rank;
    failure_.note(branch.way->link->wait(branch.put), rank);
    if (!branch.notice) return;
    const hanare_status told = branch.notice->finish();
    failure_.note(told, rank);
    const uint32_t bit = 1u << branch.index;
    if (told == HANARE_STATUS_OK) expected_ |= bit;
    // What may have arrived may be answered.
    if (!branch.notice->may_arrive()) told_ &= ~bit;
}

std::atomic<uint32_t>& Distribution::bits() const noexcept {
    return communicator_.control().words().slots[slot_.value_or(0)].bits;
}

uint32_t Distribution::missing() const noexcept {
    return expected_ == 0 ? 0 : expected_ & ~bits().load(std::memory_order_acquire);
}

void Distribution::awaited(std::vector<uint32_t>& ranks) const {
    const uint32_t left = missing();
    for (const auto& branch : branches_) {
        if (branch->notice && (left & 1u << branch->index) != 0)
            ranks.push_back(branch->child.rank);
    }
}

void Distribution::give_up(uint32_t rank, hanare_status why) noexcept {
    failure_.note(why, rank);
    for (const auto& branch : branches_) {
        if (branch->notice && branch->child.rank == rank) expected_ &= ~(1u << branch->index);
    }
}

void Distribution::give_up_all(hanare_status why) noexcept {
    for (const auto& branch : branches_) {
        if (branch->notice && (missing() & 1u << branch->index) != 0) {
            failure_.note(why, branch->child.rank);
        }
    }
    expected_ = 0;
}

Failure Distribution::failure() const noexcept {
    if (!failure_.is_none() || !slot_) return failure_;
    return Failure::of(communicator_.control().words().slots[*slot_].failure.load());
}

Distribution::Counts Distribution::counts() const noexcept {
    Counts counts;
    for (const auto& branch : branches_) {
        counts.puts += branch->way != nullptr ? 1 : 0;
        counts.notices += branch->notice ? 1 : 0;
    }
    if (slot_) counts.acknowledgements = static_cast<uint64_t>(std::popcount(bits().load()));
    return counts;
}

}  // namespace hanare::job
