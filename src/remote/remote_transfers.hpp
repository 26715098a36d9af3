// SPDX-License-Identifier: Apache-2.0
//
// What faulting threads start on a remote store.
#pragma once

#include <atomic>
#include <optional>

#include "base/thread_annotations.hpp"
#include "remote/flights.hpp"
#include "store/store.hpp"
#include "sys/lock.hpp"

namespace hanare::remote {

class RemoteTransfers final : public store::SharedTransfers {
public:
    // `bounces` as in Flights.
    RemoteTransfers(RemoteStore& store, std::optional<BounceRing> bounces);

    size_t start(store::IoRequest* const* requests, size_t count) noexcept override;
    bool is_refused() const noexcept override { return false; }
    store::IoRequest* next_completed(bool wait) noexcept override;
    bool has_completed() const noexcept override;

private:
    sys::RankedLock start_lock_{sys::LockRank::kFlights};
    mutable sys::RankedLock take_lock_{sys::LockRank::kFlights};
    mutable Flights flights_;  // by who has the lock for it
};

// One at a time, over the connection that all faulting threads share.
class SingleTransfer final : public store::SharedTransfers {
public:
    explicit SingleTransfer(RemoteStore& store) : store_(store) {}

    size_t start(store::IoRequest* const* requests, size_t count) noexcept override;
    bool is_refused() const noexcept override { return false; }
    store::IoRequest* next_completed(bool wait) noexcept override;
    bool has_completed() const noexcept override;

private:
    RemoteStore& store_;
    store::IoRequest* request_ = nullptr;
    mutable std::optional<fabric::Operation> operation_;
};

}  // namespace hanare::remote
