// SPDX-License-Identifier: Apache-2.0
//
// The channel where io_uring is refused: submit() does the transfer itself and returns when it is
// complete.  wait() sleeps on a futex: there is never anything else to wait for than notify().
#pragma once

#include "store/file_channel.hpp"
#include "store/wakeup.hpp"

namespace hanare::store {

class SyncChannel final : public FileChannel {
public:
    explicit SyncChannel(StoreFile& file) noexcept;
    ~SyncChannel() override { remove_from_store(); }

    void flush() noexcept override {}
    void wait(int timeout_ms) noexcept override;
    void notify() noexcept override;
    void abandon_in_child() noexcept override {}  // the only descriptor is the store's

private:
    void start(IoRequest& request) noexcept override;
    void collect() noexcept override {}

    Wakeup wakeup_;
};

}  // namespace hanare::store
