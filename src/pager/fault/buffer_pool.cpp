// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/buffer_pool.hpp"

#include "sys/futex.hpp"

namespace hanare::pager {

std::byte* BufferPool::acquire() noexcept {
    uint32_t used = used_.load(std::memory_order_relaxed);
    for (;;) {
        const uint32_t bit = ~used & all_ & ((used & all_) + 1);
        if (bit != 0) {
            if (used_.compare_exchange_weak(used, used | bit, std::memory_order_acquire)) {
                return memory_.address() + buffer_bytes_ * static_cast<size_t>(__builtin_ctz(bit));
            }
        } else if ((used & kAwaited) != 0 ||
                   used_.compare_exchange_weak(used, used | kAwaited, std::memory_order_relaxed)) {
            sys::futex_wait(used_, used | kAwaited);
            used = used_.load(std::memory_order_relaxed);
        }
    }
}

void BufferPool::release(const std::byte* buffer) noexcept {
    const uint32_t used =
        used_.fetch_and(~(1u << index_of(buffer) | kAwaited), std::memory_order_release);
    if ((used & kAwaited) != 0) sys::futex_wake_all(used_);
}

}  // namespace hanare::pager
