// SPDX-License-Identifier: Apache-2.0
#include "remote/remote_transfers.hpp"

#include "remote/remote_store.hpp"
#include "sys/signal.hpp"

namespace hanare::remote {

RemoteTransfers::RemoteTransfers(RemoteStore& store, std::optional<BounceRing> bounces)
    : flights_(store, Use::kShared, kInFlightMax, std::move(bounces)) {}

size_t RemoteTransfers::start(store::IoRequest* const* requests, size_t count) noexcept {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(start_lock_);
    size_t started = 0;
    while (started < count && flights_.start(*requests[started])) ++started;
    if (started > 0) flights_.send_started();
    return started;
}

store::IoRequest* RemoteTransfers::next_completed(bool wait) noexcept {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(take_lock_);
    if (wait) flights_.wait_for_oldest();
    return flights_.take();
}

// Where another thread takes them, it need not be told.
bool RemoteTransfers::has_completed() const noexcept {
    if (flights_.is_empty()) return false;
    const sys::SignalBlock no_signals;
    if (!take_lock_.try_lock()) return false;
    const bool is_one_done = flights_.is_one_done();
    take_lock_.unlock();
    return is_one_done;
}

size_t SingleTransfer::start(store::IoRequest* const* requests, size_t count) noexcept {
    if (count != 1 || request_ != nullptr) return 0;
    store::IoRequest& request = *requests[0];
    const Server::Place place = store_.server().place_of(request.offset);
    const bool is_sealed_write = request.kind == store::IoKind::kWrite && store_.seals() != nullptr;
    if (place.bytes < request.bytes || is_sealed_write) return 0;
    request_ = &request;
    fabric::Operation& operation = operation_.emplace();
    operation.capability = place.capability;
    operation.offset = place.offset;
    if (request.kind == store::IoKind::kRead) {
        operation.kind = fabric::Kind::kGet;
        operation.destination = {request.memory, request.bytes};
    } else {
        operation.kind = fabric::Kind::kPut;
        operation.source = {request.memory, request.bytes};
    }
    store_.server().link(Use::kFaults).post(operation);
    return 1;
}

store::IoRequest* SingleTransfer::next_completed(bool wait) noexcept {
    if (request_ == nullptr) return nullptr;
    fabric::TcpLink& link = store_.server().link(Use::kFaults);
    if (wait) {
        store_.server().wait(Use::kFaults, *operation_);
    } else if (!link.test(*operation_)) {
        return nullptr;
    }
    store::IoRequest* const request = std::exchange(request_, nullptr);
    request->status = store_.note(operation_->status());
    if (request->status == HANARE_STATUS_OK && request->kind == store::IoKind::kRead) {
        request->status = store_.open_seals(request->offset, request->memory, request->bytes);
    }
    return request;
}

bool SingleTransfer::has_completed() const noexcept {
    return request_ != nullptr && store_.server().link(Use::kFaults).test(*operation_);
}

}  // namespace hanare::remote
