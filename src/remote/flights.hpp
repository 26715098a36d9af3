// SPDX-License-Identifier: Apache-2.0
//
// Flights: transfers of a store that are under way on one connection.  They are answered in the
// order in which they were started.
//
// Started by one thread at a time, completed by one at a time, with all signals blocked; nothing
// allocates, but for the beginning and the end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "fabric/operation.hpp"
#include "remote/bounce_ring.hpp"
#include "remote/server.hpp"
#include "remote/silence.hpp"
#include "store/store.hpp"

namespace hanare::remote {

class RemoteStore;

class Flights {
public:
    // `bounces`: for sealed writes, if they are sealed.
    Flights(RemoteStore& store, Use use, size_t capacity, std::optional<BounceRing> bounces);
    // Of so many bytes, for blocks of up to half of that; larger ones go one or two at a time. What
    // is sealed long before it goes has left the processor's cache by then.
    static constexpr size_t kBounceBytes = 2 * fabric::TcpLink::kBytesInFlightMax;
    static Result<std::optional<BounceRing>> make_bounces(RemoteStore& store, size_t bytes);
    // Nobody waits for them any more: the server is given up where some are under way.
    ~Flights();
    Flights(const Flights&) = delete;
    Flights& operator=(const Flights&) = delete;

    // False: as many are under way as there can be, or as there is memory to seal them in.
    // Not sent before send_started() is called.
    bool start(store::IoRequest& request) noexcept;
    void send_started() noexcept { link_.send_added(); }
    // The oldest, with its status, if it is done.
    store::IoRequest* take() noexcept;
    // For who alone uses the connection: sleeps until something has happened to them, `other` is
    // readable or the time is over.
    void await(int other, int timeout_ms) noexcept;
    // Instead, as in store::IoChannel.
    bool begin_wait(sys::PollSet& set) noexcept;
    void end_wait() noexcept { link_.end_wait(); }
    // For who takes them: until the oldest is done, which it is when the server is lost.
    void wait_for_oldest() noexcept;
    bool is_empty() const noexcept { return count() == 0; }
    size_t count() const noexcept { return started_.load() - taken_.load(); }
    // Whether take() would have one.  By one who takes.
    bool is_one_done() noexcept;

private:
    struct Flight {
        store::IoRequest* request = nullptr;
        std::optional<fabric::Operation> operation;  // none: it is done, with that status
        hanare_status status = HANARE_STATUS_OK;
        bool is_bounced = false;
    };
    Flight& flight(uint64_t number) noexcept { return flights_[number % capacity_]; }
    void start_alone(Flight& flight, store::IoRequest& request) noexcept;
    hanare_status status_of(Flight& flight) noexcept;
    bool is_done(Flight& flight) noexcept;
    void check_progress() noexcept;
    void note_end() noexcept;

    RemoteStore& store_;
    fabric::TcpLink& link_;
    const size_t capacity_;
    const std::unique_ptr<Flight[]> flights_;
    std::optional<BounceRing> bounces_;
    std::atomic<uint64_t> started_{0};
    std::atomic<uint64_t> taken_{0};
    Silence silence_;  // of who takes them
};

}  // namespace hanare::remote
