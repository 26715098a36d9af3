// SPDX-License-Identifier: Apache-2.0
//
// Order: slot words are stored with release and loaded with acquire.  A reader that sees a word of
// a reused slot therefore also sees the publication that retired the slot, and reads again.
#include "hook/disposition.hpp"

#include <bit>

namespace hanare::hook {

Disposition Disposition::from(const struct sigaction& action) noexcept {
    Disposition disposition;
    disposition.flags = static_cast<uint32_t>(action.sa_flags);
    disposition.mask = load_bits(action.sa_mask);
    disposition.handler = (action.sa_flags & SA_SIGINFO) != 0
                              ? reinterpret_cast<uintptr_t>(action.sa_sigaction)
                              : reinterpret_cast<uintptr_t>(action.sa_handler);
    return disposition;
}

void Disposition::copy_to(struct sigaction* action) const noexcept {
    *action = {};
    action->sa_flags = static_cast<int>(flags);
    store_bits(&action->sa_mask, mask);
    if ((flags & SA_SIGINFO) != 0) {
        action->sa_sigaction = reinterpret_cast<void (*)(int, siginfo_t*, void*)>(handler);
    } else {
        action->sa_handler = reinterpret_cast<void (*)(int)>(handler);
    }
}

uint64_t DispositionCell::read_published(Disposition* disposition) const noexcept {
    uint64_t word = published_.load(std::memory_order_acquire);
    for (;;) {
        const Slot& slot = slots_[word % kSlots];
        disposition->handler = slot.handler.load(std::memory_order_acquire);
        disposition->mask = slot.mask.load(std::memory_order_acquire);
        disposition->flags = slot.flags.load(std::memory_order_acquire);
        const uint64_t again = published_.load(std::memory_order_acquire);
        if (again == word) return word;
        word = again;
    }
}

uint64_t DispositionCell::acquire_slot(const Disposition& disposition) noexcept {
    uint64_t free = free_slots_.load(std::memory_order_relaxed);
    for (;;) {
        if (free == 0) {  // kSlots writers at once: one of them is about to finish
            __builtin_ia32_pause();
            free = free_slots_.load(std::memory_order_relaxed);
            continue;
        }
        const auto slot = static_cast<uint64_t>(std::countr_zero(free));
        if (free_slots_.compare_exchange_weak(free, free & ~(uint64_t{1} << slot),
                                              std::memory_order_acquire,
                                              std::memory_order_relaxed)) {
            slots_[slot].handler.store(disposition.handler, std::memory_order_release);
            slots_[slot].mask.store(disposition.mask, std::memory_order_release);
            slots_[slot].flags.store(disposition.flags, std::memory_order_release);
            return slot;
        }
    }
}

void DispositionCell::release_slot(uint64_t slot) noexcept {
    free_slots_.fetch_or(uint64_t{1} << slot, std::memory_order_release);
}

bool DispositionCell::publish(uint64_t* expected, uint64_t slot) noexcept {
    const uint64_t generation = *expected / kSlots + 1;
    return published_.compare_exchange_strong(*expected, generation * kSlots + slot,
                                              std::memory_order_acq_rel, std::memory_order_acquire);
}

Disposition DispositionCell::read() const noexcept {
    Disposition disposition;
    read_published(&disposition);
    return disposition;
}

Disposition DispositionCell::exchange(const Disposition& next) noexcept {
    const uint64_t slot = acquire_slot(next);
    Disposition previous;
    uint64_t word = read_published(&previous);
    while (!publish(&word, slot)) word = read_published(&previous);
    release_slot(word % kSlots);
    return previous;
}

Disposition DispositionCell::take_for_delivery() noexcept {
    Disposition current;
    uint64_t word = read_published(&current);
    while ((current.flags & SA_RESETHAND) != 0 && current.has_handler()) {
        Disposition reset = current;
        reset.handler = reinterpret_cast<uintptr_t>(SIG_DFL);
        const uint64_t slot = acquire_slot(reset);
        if (publish(&word, slot)) {
            release_slot(word % kSlots);
            break;
        }
        release_slot(slot);
        word = read_published(&current);
    }
    return current;
}

}  // namespace hanare::hook
