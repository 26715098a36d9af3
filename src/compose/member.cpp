// SPDX-License-Identifier: Apache-2.0
#include "compose/member.hpp"

#include "compose/composed_store.hpp"
#include "sys/signal.hpp"

namespace hanare::compose {

namespace {

// Locks are taken from outside to inside: a list's, then one with redundancy's, which has members
// of one store each.
bool may_start(const store::Store& member, Kind outer) {
    const auto* const composed = dynamic_cast<const ComposedStore*>(&member);
    return composed == nullptr || (outer == Kind::kList && composed->layout().kind != Kind::kList);
}

}  // namespace

Member::Member(std::unique_ptr<store::Store> store, Kind outer)
    : store_(std::move(store)), name_(store_->describe()) {
    if (may_start(*store_, outer)) {
        transfers_ = store_->open_transfers(store::TransferCapacity::kMany);
    }
    for (auto& lane : lanes_) lane = store_->open_transfers(store::TransferCapacity::kOne);
}

bool Member::set_lost() noexcept {
    State seen = state();
    while (seen == State::kGood || seen == State::kLeaving) {
        if (state_->compare_exchange_weak(seen, State::kLost)) return true;
    }
    return false;
}

std::optional<uint64_t> Member::take_spare() {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(spares_lock_);
    if (spares_.empty()) return std::nullopt;
    const uint64_t offset = spares_.back();
    spares_.pop_back();
    return offset;
}

void Member::add_spare(uint64_t offset) {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(spares_lock_);
    spares_.push_back(offset);
}

}  // namespace hanare::compose
