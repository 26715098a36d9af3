// SPDX-License-Identifier: Apache-2.0
//
// The channel where io_uring is refused: submit() does the transfer itself and returns when it is
// complete.  wait() sleeps on a futex, since there is nothing else to wait for than notify(); once
// a descriptor is watched, on that and an eventfd.
#pragma once

#include <optional>

#include "store/file_channel.hpp"
#include "store/wakeup.hpp"
#include "sys/event.hpp"

namespace hanare::store {

class SyncChannel final : public FileChannel {
public:
    explicit SyncChannel(StoreFile& file) noexcept;
    ~SyncChannel() override { remove_from_store(); }

    void flush() noexcept override {}
    void wait(int timeout_ms) noexcept override;
    void notify() noexcept override;
    bool begin_wait(sys::PollSet&) noexcept override { return !has_completed(); }
    void watch(int descriptor) noexcept override;
    bool take_watched() noexcept override;
    void abandon_in_child() noexcept override;

private:
    void start(IoRequest& request) noexcept override;
    void collect() noexcept override {}
    bool sleep(int timeout_ms) noexcept;

    Wakeup wakeup_;
    int watched_ = -1;
    std::optional<sys::EventFd> event_;   // open from the first watch() on
    std::atomic<bool> has_event_{false};  // for notify()
};

}  // namespace hanare::store
