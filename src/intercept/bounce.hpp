// SPDX-License-Identifier: Apache-2.0
//
// Bounce buffers: local memory in which the kernel reads and writes the small arguments of system
// calls whose own place is far memory.  A call may sleep in the kernel for ever and holds no block
// meanwhile.  One buffer per thread, used as a stack, since a signal handler may interrupt a call;
// frames that were left by longjmp or cancellation are taken back by the next call below them, and
// buffers of threads that are gone by the next thread that needs one.
//
// Async-signal-safe; compiled for general registers only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hanare::intercept {

class BounceFrame {
public:
    static constexpr size_t kBytes = size_t{64} << 10;

    // `stack`: the program's stack pointer.
    explicit BounceFrame(uintptr_t stack) noexcept : stack_(stack) {}
    // Not a destructor: whoever is unwound past this frame must not need one.
    void leave() noexcept;

    // Room in the buffer, aligned to 16 bytes, and from a sector on as `like` is, for the sake of
    // transfers that pass the page cache by; nullptr when there is none left, and to a child of
    // vfork whose thread had none before.
    std::byte* take(size_t bytes, uintptr_t like = 0) noexcept;
    size_t left() noexcept;

    // In the child of a fork: only the calling thread is left.
    static void forget_others_in_child() noexcept;

private:
    bool enter() noexcept;

    const uintptr_t stack_;
    struct ThreadBuffer* buffer_ = nullptr;
    uint32_t frame_ = 0;
    bool failed_ = false;
};

}  // namespace hanare::intercept
