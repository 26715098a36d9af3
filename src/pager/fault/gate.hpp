// SPDX-License-Identifier: Apache-2.0
//
// Gate: whoever changes blocks of adopted memory is inside; a thread that forks closes it and waits
// until nobody is, so that the child finds no block and no lock in a state that only a thread of
// its parent could end.  Async-signal-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "sys/futex.hpp"

namespace hanare::pager {

class Gate {
public:
    void enter() noexcept {
        uint32_t seen = word_.load(std::memory_order_relaxed);
        for (;;) {
            if ((seen & kClosed) != 0) {
                sys::futex_wait(word_, seen);
                seen = word_.load(std::memory_order_relaxed);
            } else if (word_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire)) {
                return;
            }
        }
    }
    void leave() noexcept {
        if (word_.fetch_sub(1, std::memory_order_release) == (kClosed | 1)) {
            sys::futex_wake_all(word_);
        }
    }
    // By one thread at a time, which is outside.
    void close() noexcept {
        uint32_t seen = word_.fetch_or(kClosed, std::memory_order_acquire) | kClosed;
        while (seen != kClosed) {
            sys::futex_wait(word_, seen);
            seen = word_.load(std::memory_order_acquire);
        }
    }
    void open() noexcept {
        word_.fetch_and(~kClosed, std::memory_order_release);
        sys::futex_wake_all(word_);
    }

    class Pass {
    public:
        explicit Pass(Gate& gate) noexcept : gate_(gate) { gate_.enter(); }
        ~Pass() { gate_.leave(); }
        Pass(const Pass&) = delete;
        Pass& operator=(const Pass&) = delete;

    private:
        Gate& gate_;
    };

private:
    static constexpr uint32_t kClosed = 1u << 31;

    std::atomic<uint32_t> word_{0};  // threads inside, and kClosed
};

}  // namespace hanare::pager
