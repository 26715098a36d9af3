// SPDX-License-Identifier: Apache-2.0
#include "store/file_channel.hpp"

#include <cerrno>

#include "base/assert.hpp"
#include "sys/signal.hpp"

namespace hanare::store {

hanare_status TransferErrors::note(int os_errno) noexcept {
    if (os_errno == 0) return HANARE_STATUS_OK;
    last_.store(os_errno, std::memory_order_relaxed);
    return os_errno == ENOSPC || os_errno == EDQUOT ? HANARE_STATUS_STORE_FULL
                                                    : HANARE_STATUS_STORE_IO;
}

void ChannelList::add(FileChannel& channel) noexcept {
    const sys::SignalBlock block;
    const sys::LockGuard guard(lock_);
    channel.next_channel_ = first_.load();
    first_ = &channel;
}

void ChannelList::remove(FileChannel& channel) noexcept {
    const sys::SignalBlock block;
    const sys::LockGuard guard(lock_);
    std::atomic<FileChannel*>* link = &first_;
    while (link->load() != &channel) {
        HANARE_ASSERT(link->load() != nullptr);
        link = &link->load()->next_channel_;
    }
    *link = channel.next_channel_.load();
}

void ChannelList::abandon_in_child() noexcept {
    for (FileChannel* channel = first_; channel != nullptr; channel = channel->next_channel_) {
        channel->abandon_in_child();
    }
}

FileChannel::FileChannel(StoreFile& file, size_t requests_max) noexcept
    : file_(file), requests_max_(requests_max) {}

bool FileChannel::submit(IoRequest& request) noexcept {
    // One transfer larger than the bound must still be possible, alone.
    const bool full =
        in_flight_ >= requests_max_ || in_flight_bytes_ + request.bytes > file_.in_flight_bytes_max;
    if (full && in_flight_ > 0) return false;
    ++in_flight_;
    in_flight_bytes_ += request.bytes;
    request.done_bytes = 0;
    request.next = nullptr;
    start(request);
    return true;
}

IoRequest* FileChannel::next_completed() noexcept {
    if (first_completed_ == nullptr) collect();
    IoRequest* const request = first_completed_;
    if (request == nullptr) return nullptr;
    first_completed_ = request->next;
    if (first_completed_ == nullptr) last_completed_ = nullptr;
    request->next = nullptr;
    --in_flight_;
    in_flight_bytes_ -= request->bytes;
    return request;
}

void FileChannel::complete(IoRequest& request, int os_errno) noexcept {
    request.status = file_.errors.note(os_errno);
    request.next = nullptr;
    if (last_completed_ == nullptr) {
        first_completed_ = &request;
    } else {
        last_completed_->next = &request;
    }
    last_completed_ = &request;
}

}  // namespace hanare::store
