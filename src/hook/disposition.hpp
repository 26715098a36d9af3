// SPDX-License-Identifier: Apache-2.0
//
// The program's disposition of a claimed signal, which the kernel does not hold any more.
// sigaction() is async-signal-safe and may race itself and the handler, so the cell is lock-free:
// a writer fills a free slot and publishes its index with a new generation, a reader copies the
// published slot and looks whether the generation is still the same.  A writer that dies with its
// slot (another thread forked) costs the child one of kSlots slots.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>

#include "hook/signal_mask.hpp"

namespace hanare::hook {

struct Disposition {
    uintptr_t handler = 0;  // SIG_DFL, SIG_IGN or a function; its type depends on SA_SIGINFO
    SignalBits mask = 0;    // program mask
    uint32_t flags = 0;

    bool is_default() const { return handler == reinterpret_cast<uintptr_t>(SIG_DFL); }
    bool is_ignore() const { return handler == reinterpret_cast<uintptr_t>(SIG_IGN); }
    bool has_handler() const { return !is_default() && !is_ignore(); }

    static Disposition from(const struct sigaction& action) noexcept;
    void copy_to(struct sigaction* action) const noexcept;
};

class DispositionCell {
public:
    constexpr DispositionCell() = default;

    Disposition read() const noexcept;
    Disposition exchange(const Disposition& next) noexcept;
    // What to do with a signal now: as read(), and resets an SA_RESETHAND handler, exactly once.
    Disposition take_for_delivery() noexcept;

private:
    struct Slot {
        std::atomic<uintptr_t> handler{0};
        std::atomic<SignalBits> mask{0};
        std::atomic<uint32_t> flags{0};
    };

    static constexpr uint64_t kSlots = 64;

    // Published words are generation * kSlots + slot.
    uint64_t read_published(Disposition* disposition) const noexcept;
    uint64_t acquire_slot(const Disposition& disposition) noexcept;
    void release_slot(uint64_t slot) noexcept;
    bool publish(uint64_t* expected, uint64_t slot) noexcept;

    Slot slots_[kSlots];
    std::atomic<uint64_t> free_slots_{~uint64_t{1}};
    std::atomic<uint64_t> published_{0};
};

}  // namespace hanare::hook
