// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/part_writes.hpp"

#include <utility>

namespace hanare::pager {

PartWrites::PartWrites(store::Store& store, bool may_spin) : store_(store), spinning_(may_spin) {
    for (Set& set : sets_) set.transfers = store.open_transfers(store::TransferCapacity::kBatch);
}

PartWrites::Batch::Batch(PartWrites& owner) noexcept : owner_(owner) {
    for (Set& set : owner.sets_) {
        if (set.transfers == nullptr || set.is_taken.exchange(true, std::memory_order_acquire)) {
            continue;
        }
        set_ = &set;
        return;
    }
}

hanare_status PartWrites::Batch::add(const store::IoRequest& write) noexcept {
    if (set_ == nullptr) return write_alone(write);
    hanare_status status = HANARE_STATUS_OK;
    if (count_ == set_->requests.size()) status = finish();
    set_->requests[count_++] = write;
    return status;
}

hanare_status PartWrites::Batch::finish() noexcept {
    const size_t count = std::exchange(count_, 0);
    if (count == 0) return HANARE_STATUS_OK;
    if (count == 1) return write_alone(set_->requests[0]);
    std::array<store::IoRequest*, store::SharedTransfers::kStartMax> started{};
    for (size_t i = 0; i < count; ++i) started[i] = &set_->requests[i];
    store::SharedTransfers& transfers = *set_->transfers;
    const size_t in_flight = transfers.start(started.data(), count);
    hanare_status status = HANARE_STATUS_OK;
    const auto note = [&](hanare_status result) {
        if (status == HANARE_STATUS_OK) status = result;
    };
    for (size_t i = in_flight; i < count; ++i) note(write_alone(*started[i]));
    size_t left = in_flight;
    const auto collect = [&](bool wait) {
        while (left > 0) {
            const store::IoRequest* const done = transfers.next_completed(wait);
            if (done == nullptr) break;
            note(done->status);
            --left;
        }
        return left == 0;
    };
    if (!owner_.spinning_.until([&] { return collect(false); })) {
        while (!collect(true)) {
        }
    }
    return status;
}

}  // namespace hanare::pager
