// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/block.hpp"

#include "base/assert.hpp"
#include "sys/futex.hpp"
#include "sys/lock.hpp"

namespace hanare::pager {

void Block::advance(BlockState target) noexcept {
    uint32_t seen = word.load(std::memory_order_relaxed);
    do {
        HANARE_ASSERT(block_word::transient(seen));
    } while (!word.compare_exchange_weak(seen, block_word::with_state(seen, target),
                                         std::memory_order_acq_rel));
}

void Block::leave(BlockState target, uint32_t set, uint32_t clear) noexcept {
    uint32_t seen = word.load(std::memory_order_relaxed);
    uint32_t next = 0;
    do {
        HANARE_ASSERT(block_word::transient(seen));
        next = (block_word::with_state(seen, target) | set) & ~(clear | block_word::kWaiters);
    } while (!word.compare_exchange_weak(seen, next, std::memory_order_acq_rel));
    if ((seen & block_word::kWaiters) != 0) sys::futex_wake_all(word);
}

void Block::wait(uint32_t seen) noexcept {
    sys::SpinWait spin;
    do {
        if (load() != seen) return;
    } while (spin.spin());
    const uint32_t marked = seen | block_word::kWaiters;
    if (seen != marked && !word.compare_exchange_strong(seen, marked, std::memory_order_acq_rel)) {
        return;
    }
    sys::futex_wait(word, marked);
}

}  // namespace hanare::pager
