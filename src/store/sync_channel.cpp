// SPDX-License-Identifier: Apache-2.0
#include "store/sync_channel.hpp"

#include <cstdint>

#include "sys/file.hpp"
#include "sys/futex.hpp"

namespace hanare::store {

SyncChannel::SyncChannel(StoreFile& file) noexcept : FileChannel(file, SIZE_MAX) { add_to_store(); }

void SyncChannel::start(IoRequest& request) noexcept {
    const int error = request.kind == IoKind::kRead
                          ? sys::read_at(file(), request.offset, request.memory, request.bytes)
                          : sys::write_at(file(), request.offset, request.memory, request.bytes);
    if (error == 0) request.done_bytes = request.bytes;
    complete(request, error);
}

void SyncChannel::wait(int timeout_ms) noexcept {
    const Deadline deadline(timeout_ms);
    while (!has_completed()) {
        const int remaining_ms = deadline.remaining_ms();
        if (remaining_ms == 0 || !wakeup_.begin_wait()) break;
        const bool is_readable = sleep(remaining_ms);
        if (wakeup_.end_wait() || is_readable) return;
    }
    wakeup_.end_wait();
}

// Whether the watched descriptor has become readable.
bool SyncChannel::sleep(int timeout_ms) noexcept {
    if (!event_) {
        sys::futex_wait(wakeup_.word(), Wakeup::kAsleep, timeout_ms);
        return false;
    }
    const sys::Readable readable = sys::wait_until_readable(event_->number(), watched_, timeout_ms);
    if (readable.first) event_->clear();
    return readable.second;
}

void SyncChannel::notify() noexcept {
    if (!wakeup_.notify()) return;
    if (has_event_.load(std::memory_order_acquire)) {
        event_->post();
    } else {
        sys::futex_wake(wakeup_.word(), 1);
    }
}

// Nobody is to be woken meanwhile: the thread that waits is here.
void SyncChannel::watch(int descriptor) noexcept {
    if (descriptor >= 0 && !event_) {
        auto event = sys::EventFd::open();
        watched_ = -1;
        if (!event) return;
        event_.emplace(std::move(*event));
        has_event_.store(true, std::memory_order_release);
    }
    watched_ = descriptor;
}

bool SyncChannel::take_watched() noexcept {
    return watched_ >= 0 && sys::wait_until_readable(-1, watched_, 0).second;
}

void SyncChannel::abandon_in_child() noexcept {
    if (event_) event_->close();
}

}  // namespace hanare::store
