// SPDX-License-Identifier: Apache-2.0
#include "remote/remote_channel.hpp"

#include "remote/remote_store.hpp"

namespace hanare::remote {
namespace {

using For = sys::ReadySet::For;
constexpr uint32_t kNotice = 0;
constexpr uint32_t kWatched = 1;

}  // namespace

Result<std::unique_ptr<store::IoChannel>> RemoteChannel::open(RemoteStore& store) {
    HANARE_TRY_ASSIGN(sys::EventFd notice, sys::EventFd::open());
    HANARE_TRY_ASSIGN(sys::ReadySet others, sys::ReadySet::open());
    if (const int error = others.add(notice.number(), kNotice, For::kReading); error != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, error, "cannot wait for notices");
    }
    HANARE_TRY_ASSIGN(auto bounces, Flights::make_bounces(store, Flights::kBounceBytes));
    return std::unique_ptr<store::IoChannel>(
        new RemoteChannel(store, std::move(bounces), std::move(notice), std::move(others)));
}

RemoteChannel::RemoteChannel(RemoteStore& store, std::optional<BounceRing> bounces,
                             sys::EventFd notice, sys::ReadySet others)
    : store_(store),
      flights_(store, Use::kKeeper, kRequestsMax, std::move(bounces)),
      notice_(std::move(notice)),
      others_(std::move(others)) {}

bool RemoteChannel::submit(store::IoRequest& request) noexcept {
    const bool is_full = bytes_ + request.bytes > store_.in_flight_bytes_max();
    if (is_full && !flights_.is_empty()) return false;
    request.done_bytes = 0;
    request.next = nullptr;
    if (!flights_.start(request)) return false;
    bytes_ += request.bytes;
    if (request.kind == store::IoKind::kWrite) unsent_bytes_ += request.bytes;
    if (unsent_bytes_ >= kGatheredBytes) flush();
    return true;
}

store::IoRequest* RemoteChannel::next_completed() noexcept {
    store::IoRequest* const request = flights_.take();
    if (request != nullptr) bytes_ -= request->bytes;
    return request;
}

void RemoteChannel::flush() noexcept {
    unsent_bytes_ = 0;
    if (!flights_.is_empty()) flights_.send_started();
}

void RemoteChannel::wait(int timeout_ms) noexcept {
    flush();
    if (!is_notified_.exchange(false) && !flights_.is_one_done()) {
        flights_.await(others_.number(), timeout_ms);
        is_notified_.store(false);
    }
    notice_.clear();
}

void RemoteChannel::notify() noexcept {
    if (!is_notified_.exchange(true)) notice_.post();
}

void RemoteChannel::watch(int descriptor) noexcept {
    if (watched_ >= 0) others_.remove(watched_);
    watched_ = -1;
    if (descriptor >= 0 && others_.add(descriptor, kWatched, For::kReading) == 0) {
        watched_ = descriptor;
    }
}

bool RemoteChannel::take_watched() noexcept {
    return watched_ >= 0 && sys::wait_until_readable(-1, watched_, 0).second;
}

}  // namespace hanare::remote
