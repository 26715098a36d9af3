// SPDX-License-Identifier: Apache-2.0
//
// BufferPool: a few buffers for work within one fault.  Any thread, in handlers too: who finds none
// waits until one is released.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "sys/memory.hpp"

namespace hanare::pager {

class BufferPool {
public:
    static constexpr uint32_t kBuffersMax = 31;

    // `memory` is cut into buffers of this size, at most kBuffersMax of them.
    BufferPool(sys::Mapping memory, size_t buffer_bytes)
        : memory_(std::move(memory)),
          buffer_bytes_(buffer_bytes),
          all_((1u << (memory_.bytes() / buffer_bytes)) - 1) {}

    size_t buffer_bytes() const noexcept { return buffer_bytes_; }

    // Held until it goes out of scope.
    class Buffer {
    public:
        explicit Buffer(BufferPool& pool) noexcept : pool_(pool), memory_(pool.acquire()) {}
        ~Buffer() { pool_.release(memory_); }
        Buffer(const Buffer&) = delete;
        Buffer& operator=(const Buffer&) = delete;

        std::byte* memory() const noexcept { return memory_; }
        size_t index() const noexcept { return pool_.index_of(memory_); }

    private:
        BufferPool& pool_;
        std::byte* const memory_;
    };

private:
    static constexpr uint32_t kAwaited = 1u << 31;  // somebody sleeps until one is released

    std::byte* acquire() noexcept;
    void release(const std::byte* buffer) noexcept;
    size_t index_of(const std::byte* buffer) const noexcept {
        return static_cast<size_t>(buffer - memory_.address()) / buffer_bytes_;
    }

    const sys::Mapping memory_;
    const size_t buffer_bytes_;
    const uint32_t all_;
    std::atomic<uint32_t> used_{0};  // one bit per buffer, and kAwaited
};

}  // namespace hanare::pager
