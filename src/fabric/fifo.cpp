// SPDX-License-Identifier: Apache-2.0
#include "fabric/fifo.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "sys/clock.hpp"
#include "sys/futex.hpp"
#include "sys/life_lock.hpp"
#include "sys/lock.hpp"
#include "sys/raw_thread.hpp"
#include "sys/signal.hpp"
#include "sys/thread_state.hpp"

namespace hanare::fabric {
namespace {

constexpr uint64_t kMagic = 0x4f46'4946'6572'616e;  // "nareFIFO"

constexpr uint64_t occupied_by(uint64_t message_bytes) noexcept {
    constexpr uint64_t kUnit = Fifo::kMessageBytes;
    return kUnit + (message_bytes + kUnit - 1) / kUnit * kUnit;
}

}  // namespace

// Held or not; who dies with it is noticed by whoever comes next.
class Fifo::Lock {
public:
    Lock(std::atomic<uint32_t>& holder, uint64_t patience_ns) noexcept : holder_(holder) {
        is_held_ = try_to_hold() || wait_and_hold(patience_ns);
    }
    ~Lock() {
        uint32_t own = own_;
        if (is_held_) holder_.compare_exchange_strong(own, 0, std::memory_order_release);
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    bool is_held() const noexcept { return is_held_; }

private:
    bool try_to_hold(uint32_t from = 0) noexcept {
        return holder_.compare_exchange_strong(from, own_, std::memory_order_acquire);
    }
    bool wait_and_hold(uint64_t patience_ns) noexcept {
        const uint64_t begin_ns = sys::now_ns();
        sys::SpinWait wait;
        for (;;) {
            if (try_to_hold()) return true;
            if (wait.spin()) continue;
            const uint32_t seen = holder_.load(std::memory_order_relaxed);
            // It is not this thread, nor another frame of it, since signals are blocked.
            const bool is_dead = seen == own_ || !sys::process_exists(static_cast<pid_t>(seen));
            if (is_dead && try_to_hold(seen)) return true;
            if (sys::now_ns() - begin_ns > patience_ns) return false;
            sys::yield_for_us(0);
        }
    }

    const sys::SignalBlock no_signals_;
    const uint32_t own_ = sys::raw_thread_id();
    std::atomic<uint32_t>& holder_;
    bool is_held_ = false;
};

hanare_status Fifo::format(std::span<std::byte> memory) noexcept {
    if (reinterpret_cast<uintptr_t>(memory.data()) % kAlignment != 0 ||
        memory.size() < kHeaderBytes + 2 * kMessageBytes) {
        return HANARE_STATUS_INVALID_ARGUMENT;
    }
    auto* const header = new (memory.data()) Header{};
    header->magic.store(kMagic);
    return HANARE_STATUS_OK;
}

bool Fifo::is_queue() const noexcept {
    return reinterpret_cast<uintptr_t>(memory_.data()) % kAlignment == 0 &&
           memory_.size() >= kHeaderBytes + 2 * kMessageBytes &&
           header().magic.load(std::memory_order_acquire) == kMagic;
}

// `position` counts from the beginning of all time.
void Fifo::copy_in(uint64_t position, const std::byte* from, size_t bytes) const noexcept {
    const std::span<std::byte> all = ring();
    const size_t begin = position % all.size();
    const size_t first = std::min(bytes, all.size() - begin);
    if (first != 0) std::memcpy(all.data() + begin, from, first);
    if (bytes != first) std::memcpy(all.data(), from + first, bytes - first);
}

void Fifo::copy_out(uint64_t position, std::byte* to, size_t bytes) const noexcept {
    const std::span<std::byte> all = ring();
    const size_t begin = position % all.size();
    const size_t first = std::min(bytes, all.size() - begin);
    if (first != 0) std::memcpy(to, all.data() + begin, first);
    if (bytes != first) std::memcpy(to + first, all.data(), bytes - first);
}

hanare_status Fifo::push(std::span<const std::byte> message, uint64_t patience_ns) noexcept {
    if (!is_queue()) return HANARE_STATUS_CORRUPT;
    const uint64_t capacity = ring().size();
    const uint64_t needed = occupied_by(message.size());
    if (message.size() > capacity || needed > capacity) return HANARE_STATUS_OUT_OF_RANGE;
    const Lock lock(header().holder, patience_ns);
    if (!lock.is_held()) return HANARE_STATUS_BUSY;
    const uint64_t tail = header().tail.load(std::memory_order_relaxed);
    const uint64_t used = tail - header().head.load(std::memory_order_relaxed);
    if (used > capacity || tail % kMessageBytes != 0) return HANARE_STATUS_CORRUPT;
    if (needed > capacity - used) return HANARE_STATUS_FULL;
    const uint64_t bytes = message.size();
    copy_in(tail, reinterpret_cast<const std::byte*>(&bytes), sizeof bytes);
    copy_in(tail + kMessageBytes, message.data(), message.size());
    header().tail.store(tail + needed, std::memory_order_release);
    return HANARE_STATUS_OK;
}

bool Fifo::is_empty() const noexcept {
    return !is_queue() || header().head.load(std::memory_order_relaxed) ==
                              header().tail.load(std::memory_order_acquire);
}

hanare_status Fifo::pop(std::span<std::byte> room, size_t& bytes, uint64_t patience_ns) noexcept {
    if (!is_queue()) return HANARE_STATUS_CORRUPT;
    // Most of those who ask find nothing, and need no lock for it.
    if (is_empty()) return HANARE_STATUS_EMPTY;
    const Lock lock(header().holder, patience_ns);
    if (!lock.is_held()) return HANARE_STATUS_BUSY;
    const uint64_t head = header().head.load(std::memory_order_relaxed);
    const uint64_t used = header().tail.load(std::memory_order_relaxed) - head;
    if (used == 0) return HANARE_STATUS_EMPTY;
    if (used > ring().size() || used < kMessageBytes || head % kMessageBytes != 0) {
        return HANARE_STATUS_CORRUPT;
    }
    uint64_t message_bytes = 0;
    copy_out(head, reinterpret_cast<std::byte*>(&message_bytes), sizeof message_bytes);
    if (message_bytes > used - kMessageBytes || occupied_by(message_bytes) > used) {
        return HANARE_STATUS_CORRUPT;
    }
    bytes = message_bytes;
    if (message_bytes > room.size()) return HANARE_STATUS_OUT_OF_RANGE;
    copy_out(head + kMessageBytes, room.data(), message_bytes);
    header().head.store(head + occupied_by(message_bytes), std::memory_order_release);
    return HANARE_STATUS_OK;
}

// ---- the bell

void Fifo::hang_bell(Bell bell, uint32_t thread) noexcept {
    header().thread.store(thread, std::memory_order_relaxed);
    header().bell.store(static_cast<uint32_t>(bell));
}

void Fifo::forget_holder() noexcept {
    if (is_queue()) header().holder.store(0);
}

void Fifo::sleep(int timeout_ms) noexcept {
    sys::shared_futex_wait(header().bell, static_cast<uint32_t>(Bell::kSleeper), timeout_ms);
}

void Fifo::ring_bell(int process) noexcept {
    if (!is_queue()) return;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    uint32_t bell = header().bell.load();
    if (bell == static_cast<uint32_t>(Bell::kNobody)) return;
    const uint32_t thread = header().thread.load(std::memory_order_relaxed);
    if (!header().bell.compare_exchange_strong(bell, static_cast<uint32_t>(Bell::kNobody))) return;
    if (bell == static_cast<uint32_t>(Bell::kSleeper)) {
        sys::shared_futex_wake_all(header().bell);
    } else if (!sys::signal_thread_of(process, thread, kBellSignal)) {
        // The thread is no more: whoever is told next must not be told by nobody.
        uint32_t nobody = static_cast<uint32_t>(Bell::kNobody);
        header().bell.compare_exchange_strong(nobody, bell);
    }
}

}  // namespace hanare::fabric
