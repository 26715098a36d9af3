// SPDX-License-Identifier: Apache-2.0
//
// ByteRing: a stream of bytes in one direction, through memory that two processes have mapped.  One
// thread at a time writes, one at a time reads; each end has its own object.  Nobody enters the
// kernel while the other side looks for itself; who is about to sleep says so, and is owed a bell
// then, which somebody else rings (transport.hpp).
//
// What the other process can write is not believed: each end keeps its own position, and where the
// other's makes no sense the ring is of no more use (-EBADMSG).  Async-signal-safe, never waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sys/tcp_socket.hpp"

namespace hanare::fabric {

class ByteRing {
public:
    static constexpr size_t kCapacity = 256 * 1024;
    static constexpr size_t kMemoryBytes = 4096 + kCapacity;

    // kMemoryBytes of zeros at first, aligned to a page.
    explicit ByteRing(std::byte* memory) noexcept
        : head_(*reinterpret_cast<Head*>(memory)), data_(memory + kHeadBytes) {}
    ByteRing(const ByteRing&) = delete;
    ByteRing& operator=(const ByteRing&) = delete;

    // As much as there is room for, in order; -EAGAIN: no room.  `owes_bell` is set when the reader
    // has said that it sleeps, to one thread.
    ptrdiff_t write(std::span<const sys::Part> parts, bool& owes_bell) noexcept;
    // As much as is there; -EAGAIN: nothing.  `owes_bell`: likewise, of the writer.
    ptrdiff_t read(std::span<const sys::Part> parts, bool& owes_bell) noexcept;

    // Of the reading end, by any thread.
    bool is_empty() const noexcept {
        return head_.written.load(std::memory_order_acquire) == position_.load();
    }
    // Of the writing end, by any thread.
    bool is_full() const noexcept {
        return position_.load() - head_.read.load(std::memory_order_acquire) >= kCapacity;
    }
    // The reading end looks at is_empty(), the writing end at is_full(), after this and before it
    // sleeps.
    void reader_sleeps(bool sleeps) noexcept { head_.reader_sleeps.store(sleeps ? 1 : 0); }
    void writer_sleeps(bool sleeps) noexcept { head_.writer_sleeps.store(sleeps ? 1 : 0); }

private:
    static constexpr size_t kHeadBytes = 4096;
    static constexpr size_t kLineBytes = 64;
    // Zeros: empty, and nobody sleeps.
    struct Head {
        alignas(kLineBytes) std::atomic<uint64_t> written;  // bytes, ever
        std::atomic<uint32_t> writer_sleeps;
        alignas(kLineBytes) std::atomic<uint64_t> read;
        std::atomic<uint32_t> reader_sleeps;
    };
    static_assert(sizeof(Head) <= kHeadBytes);

    Head& head_;
    std::byte* const data_;
    // Of this end: bytes written, or read, ever.
    std::atomic<uint64_t> position_{0};
};

}  // namespace hanare::fabric
