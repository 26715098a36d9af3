// SPDX-License-Identifier: Apache-2.0
#include "remote/flights.hpp"

#include <algorithm>

#include "remote/remote_store.hpp"
#include "sys/clock.hpp"

namespace hanare::remote {
namespace {

constexpr int kSliceMs = Silence::kSlice_ns / 1'000'000;

}  // namespace

Result<std::optional<BounceRing>> Flights::make_bounces(RemoteStore& store, size_t bytes) {
    if (store.seals() == nullptr) return std::optional<BounceRing>();
    HANARE_TRY_ASSIGN(BounceRing ring, BounceRing::make(bytes, 2 * store.in_flight_bytes_max()));
    return std::optional<BounceRing>(std::move(ring));
}

Flights::Flights(RemoteStore& store, Use use, size_t capacity, std::optional<BounceRing> bounces)
    : store_(store),
      link_(store.server().link(use)),
      capacity_(capacity),
      flights_(std::make_unique<Flight[]>(capacity)),
      bounces_(std::move(bounces)) {}

Flights::~Flights() {
    if (!is_empty()) link_.end();
}

bool Flights::start(store::IoRequest& request) noexcept {
    const uint64_t number = started_.load(std::memory_order_relaxed);
    if (number - taken_.load(std::memory_order_acquire) == capacity_) return false;
    Flight& next = flight(number);
    const Server::Place place = store_.server().place_of(request.offset);
    const bool is_whole = place.bytes >= request.bytes;
    const bool is_write = request.kind == store::IoKind::kWrite;
    const std::byte* source = request.memory;
    next.is_bounced = is_whole && is_write && bounces_;
    if (next.is_bounced) {
        std::byte* const sealed = bounces_->take(request.bytes);
        if (sealed == nullptr) return false;
        source = sealed;
        if (!store_.seals()->seal(request.offset, request.memory, sealed, request.bytes)) {
            store_.note(HANARE_STATUS_LIMIT);  // and so the operation fails
        }
    }
    next.request = &request;
    next.operation.reset();
    if (!is_whole) {
        start_alone(next, request);
        started_.store(number + 1, std::memory_order_release);
        return true;
    }
    fabric::Operation& operation = next.operation.emplace();
    operation.capability = place.capability;
    operation.offset = place.offset;
    operation.kind = is_write ? fabric::Kind::kPut : fabric::Kind::kGet;
    if (is_write) {
        operation.source = {source, request.bytes};
    } else {
        operation.destination = {request.memory, request.bytes};
    }
    started_.store(number + 1, std::memory_order_release);
    link_.add(operation);
    return true;
}

// What lies in two extents, which is rare.
void Flights::start_alone(Flight& flight, store::IoRequest& request) noexcept {
    flight.status = request.kind == store::IoKind::kRead
                        ? store_.read(request.offset, request.memory, request.bytes)
                        : store_.write(request.offset, request.memory, request.bytes);
}

// Of one that is done.
hanare_status Flights::status_of(Flight& flight) noexcept {
    if (!flight.operation) return flight.status;
    const store::IoRequest& request = *flight.request;
    if (flight.is_bounced) bounces_->give_back(request.bytes);
    const hanare_status status = store_.note(flight.operation->status());
    if (status != HANARE_STATUS_OK || request.kind == store::IoKind::kWrite) return status;
    return store_.open_seals(request.offset, request.memory, request.bytes);
}

bool Flights::is_done(Flight& flight) noexcept {
    return !flight.operation || link_.look(*flight.operation);
}

bool Flights::is_one_done() noexcept {
    const uint64_t number = taken_.load(std::memory_order_acquire);
    if (number == started_.load(std::memory_order_acquire)) return false;
    return is_done(flight(number));
}

store::IoRequest* Flights::take() noexcept {
    const uint64_t number = taken_.load(std::memory_order_relaxed);
    if (number == started_.load(std::memory_order_acquire)) return nullptr;
    Flight& oldest = flight(number);
    if (!is_done(oldest)) {
        check_progress();
        return nullptr;
    }
    store::IoRequest* const request = oldest.request;
    const hanare_status status = status_of(oldest);
    request->status = status;
    if (status == HANARE_STATUS_OK) request->done_bytes = request->bytes;
    taken_.store(number + 1, std::memory_order_release);
    return request;
}

void Flights::check_progress() noexcept {
    Server& server = store_.server();
    if (silence_.is_longer_than(server.timeout_ns(), link_.progress(), sys::now_ns())) {
        server.note_failure(HANARE_STATUS_TIMEOUT);
    }
}

void Flights::wait_for_oldest() noexcept {
    const uint64_t number = taken_.load(std::memory_order_relaxed);
    if (number == started_.load(std::memory_order_acquire)) return;
    Flight& oldest = flight(number);
    while (oldest.operation &&
           !link_.wait_until(*oldest.operation, sys::now_ns() + Silence::kSlice_ns)) {
        check_progress();
    }
}

void Flights::await(int other, int timeout_ms) noexcept {
    const int slice_ms = timeout_ms < 0 ? kSliceMs : std::min(timeout_ms, kSliceMs);
    link_.await(other, is_empty() ? timeout_ms : slice_ms);
    note_end();
}

bool Flights::begin_wait(sys::PollSet& set) noexcept {
    const bool waits = link_.begin_wait(set);
    note_end();
    return waits && !is_one_done();
}

void Flights::note_end() noexcept {
    Server& server = store_.server();
    if (link_.is_lost() && !server.is_lost()) server.note_failure(HANARE_STATUS_PEER_LOST);
}

}  // namespace hanare::remote
