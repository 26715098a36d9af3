// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/fault_transfers.hpp"

#include "pager/fault/pager.hpp"

namespace hanare::pager {

namespace {

constexpr uint32_t kYields = 200;
constexpr uint32_t kPauseUs = 100;

uint64_t bytes_read(const store::IoRequest& request) {
    return request.kind == store::IoKind::kRead ? request.bytes : 0;
}

}  // namespace

void FaultTransfers::start(store::IoRequest* const* requests, size_t count) noexcept {
    if (count == 0) return;
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; ++i) bytes += bytes_read(*requests[i]);
    read_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    for (size_t at = 0; at < count; ++at) {
        // What has started belongs to whoever completes it, and may be completed already.
        const size_t started = transfers_->start(requests + at, count - at);
        in_flight_.fetch_add(static_cast<int32_t>(started), std::memory_order_seq_cst);
        // Who waits for a frame has seen that none was in flight, and may now wait for these.
        pager_.frames().note_progress();
        at += started;
        if (at == count) break;
        read_bytes_.fetch_sub(bytes_read(*requests[at]), std::memory_order_relaxed);
        pager_.abandon_transfer(*requests[at]);
    }
}

// At first only to other threads that are ready; but the starter may have a lower priority.
void FaultTransfers::yield_to_starter(uint32_t turn) noexcept {
    sys::yield_for_us(turn < kYields ? 0 : kPauseUs);
}

void FaultTransfers::poll() noexcept {
    if (transfers_ == nullptr || !transfers_->has_completed() || !try_lead()) return;
    complete_arrived();
    stop_leading();
}

// The caller leads.
void FaultTransfers::complete_arrived() noexcept {
    while (complete_next(false)) {
    }
}

void FaultTransfers::stop_leading() noexcept {
    leading_.store(false, std::memory_order_seq_cst);
    if (followers_.load(std::memory_order_seq_cst) == 0) return;
    changes_.fetch_add(1, std::memory_order_seq_cst);
    sys::futex_wake_all(changes_);
}

// The caller leads.
bool FaultTransfers::complete_next(bool wait) noexcept {
    if (transfers_ == nullptr) return false;
    if (wait && in_flight_.load(std::memory_order_seq_cst) <= 0) return false;
    store::IoRequest* const request = transfers_->next_completed(wait);
    if (request == nullptr) return false;
    in_flight_.fetch_sub(1, std::memory_order_seq_cst);
    read_bytes_.fetch_sub(bytes_read(*request), std::memory_order_relaxed);
    pager_.finish_transfer(*request);
    return true;
}

}  // namespace hanare::pager
