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
        sys::futex_wait(wakeup_.word(), Wakeup::kAsleep, remaining_ms);
        if (wakeup_.end_wait()) return;
    }
    wakeup_.end_wait();
}

void SyncChannel::notify() noexcept {
    if (wakeup_.notify()) sys::futex_wake(wakeup_.word(), 1);
}

}  // namespace hanare::store
