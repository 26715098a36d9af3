// SPDX-License-Identifier: Apache-2.0
//
// The asynchronous channel of a file store: transfers go through an io_uring.  A thread that sleeps
// in wait() is woken by an eventfd whose readiness is one more operation in the ring.
#pragma once

#include <memory>

#include "store/file_channel.hpp"
#include "store/wakeup.hpp"
#include "sys/event.hpp"
#include "sys/uring.hpp"

namespace hanare::store {

class UringChannel final : public FileChannel {
public:
    static Result<std::unique_ptr<IoChannel>> open(StoreFile& file);
    // Waits for what is in flight.
    ~UringChannel() override;

    void flush() noexcept override { ring_->submit(); }
    void wait(int timeout_ms) noexcept override;
    void notify() noexcept override;
    bool begin_wait(sys::PollSet& set) noexcept override;
    void watch(int descriptor) noexcept override;
    bool take_watched() noexcept override;
    void abandon_in_child() noexcept override;

private:
    UringChannel(StoreFile& file, std::unique_ptr<sys::Uring> ring, sys::EventFd event);

    void start(IoRequest& request) noexcept override;
    void collect() noexcept override;
    void queue_rest(IoRequest& request, size_t bytes) noexcept;
    void transferred(IoRequest& request, int32_t result) noexcept;
    void transfer_here(IoRequest& request) noexcept;
    void queue_polls() noexcept;

    std::unique_ptr<sys::Uring> ring_;
    sys::EventFd event_;
    Wakeup wakeup_;
    bool event_watched_ = false;  // the ring holds a poll of event_
    int watched_ = -1;
    uint64_t watched_tag_;         // of its polls; those of others are over
    bool watched_polled_ = false;  // the ring holds one
    bool watched_ready_ = false;
    bool abandoned_ = false;
    size_t in_ring_ = 0;  // transfers queued or with the kernel
    uint64_t without_workers_until_ns_ = 0;
};

}  // namespace hanare::store
