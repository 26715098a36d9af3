// SPDX-License-Identifier: Apache-2.0
//
// The shared transfers of a file store, by io_submit(2).
#pragma once

#include <array>
#include <atomic>

#include "store/file_channel.hpp"
#include "store/store.hpp"
#include "sys/aio.hpp"

namespace hanare::store {

class AioTransfers final : public SharedTransfers {
public:
    AioTransfers(StoreFile& file, sys::Aio::Kind kind)
        : file_(file), aio_(kind, file.descriptor.number()) {}

    bool is_refused() const noexcept override { return aio_.is_refused(); }
    size_t start(IoRequest* const* requests, size_t count) noexcept override;
    IoRequest* next_completed(bool wait) noexcept override;
    bool has_completed() const noexcept override { return !aio_.is_empty(); }

private:
    int finish(const IoRequest& request, int64_t result) noexcept;

    StoreFile& file_;
    sys::Aio aio_;
    // Says to the compiler what the kernel sees to: a request is written before it is completed.
    std::atomic<uint32_t> starts_{0};
    // Collected and not returned yet: not counted by has_completed().
    std::array<sys::Aio::Completion, 16> completions_;
    size_t next_ = 0;
    size_t collected_ = 0;
};

}  // namespace hanare::store
