// SPDX-License-Identifier: Apache-2.0
//
// PartReads: buffers for parts of blocks, and how they are filled from the store.  Each buffer has
// asynchronous reads of its own, so that who waits for a part can spin for it, and depends on the
// device and on no other thread.
//
// Any thread, fault handlers included.
#pragma once

#include <array>
#include <memory>

#include "hanare/status.h"
#include "pager/fault/buffer_pool.hpp"
#include "pager/fault/frame.hpp"
#include "pager/fault/spinning.hpp"
#include "store/store.hpp"

namespace hanare::pager {

class PartReads {
public:
    static constexpr uint32_t kBuffers = 16;

    // `memory`: kBuffers buffers of kPartBytesMax.  Normal context.
    PartReads(store::Store& store, sys::Mapping memory, bool may_spin);

    // In the child of a fork: the system's means are the parent's.
    void abandon_in_child() noexcept {
        for (auto& reads : reads_) static_cast<void>(reads.release());
    }

    // Held until it goes out of scope; who finds none waits until one is released.
    class Buffer {
    public:
        explicit Buffer(PartReads& owner) noexcept : owner_(owner), buffer_(owner.buffers_) {}

        std::byte* memory() const noexcept { return buffer_.memory(); }
        hanare_status read(uint64_t offset, size_t bytes) noexcept {
            start(offset, bytes);
            return finish();
        }

        // In two halves.  Between them is_done() tells whether it is worth while to do something
        // else: not where the read is only made by finish().
        void start(uint64_t offset, size_t bytes) noexcept;
        bool is_done() noexcept;
        hanare_status finish() noexcept;

    private:
        void wait() noexcept;

        PartReads& owner_;
        const BufferPool::Buffer buffer_;
        store::IoRequest request_;
        store::SharedTransfers* transfers_ = nullptr;  // that have started it
        bool is_done_ = true;
    };

private:
    store::Store& store_;
    BufferPool buffers_;
    Spinning spinning_;
    // By buffer; null where the store has none.
    std::array<std::unique_ptr<store::SharedTransfers>, kBuffers> reads_;
};

}  // namespace hanare::pager
