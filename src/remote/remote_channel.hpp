// SPDX-License-Identifier: Apache-2.0
//
// The channel of a remote store: a connection of its own, and an event for those who notify.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "remote/flights.hpp"
#include "store/store.hpp"
#include "sys/event.hpp"

namespace hanare::remote {

class RemoteChannel final : public store::IoChannel {
public:
    static Result<std::unique_ptr<store::IoChannel>> open(RemoteStore& store);

    bool submit(store::IoRequest& request) noexcept override;
    void flush() noexcept override;
    store::IoRequest* next_completed() noexcept override;
    bool has_completed() const noexcept override { return false; }
    void wait(int timeout_ms) noexcept override;
    void notify() noexcept override;
    bool begin_wait(sys::PollSet& set) noexcept override { return flights_.begin_wait(set); }
    void end_wait() noexcept override { flights_.end_wait(); }
    void watch(int descriptor) noexcept override;
    bool take_watched() noexcept override;
    size_t in_flight() const noexcept override { return flights_.count(); }

private:
    static constexpr size_t kRequestsMax = 256;
    // Of writes that go together; what reads ask with is small.
    static constexpr size_t kGatheredBytes = 256 * 1024;

    RemoteChannel(RemoteStore& store, std::optional<BounceRing> bounces, sys::EventFd notice,
                  sys::ReadySet others);

    RemoteStore& store_;
    Flights flights_;
    size_t bytes_ = 0;         // in flight
    size_t unsent_bytes_ = 0;  // of these, perhaps
    sys::EventFd notice_;
    sys::ReadySet others_;  // notice_, and what is watched
    int watched_ = -1;
    std::atomic<bool> is_notified_{false};
};

}  // namespace hanare::remote
