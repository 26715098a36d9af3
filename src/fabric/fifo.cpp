// SPDX-License-Identifier: Apache-2.0
#include "fabric/fifo.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "sys/clock.hpp"
#include "sys/futex.hpp"
#include "sys/life_lock.hpp"
#include "sys/lock.hpp"
#include "sys/own_thread_id.hpp"
#include "sys/signal.hpp"
#include "sys/thread_state.hpp"

namespace hanare::fabric {
namespace {

constexpr uint64_t kMagic = 0x4f46'4946'6572'616e;  // "nareFIFO"

constexpr uint64_t occupied_by(uint64_t message_bytes) noexcept {
    constexpr uint64_t kUnit = Fifo::kMessageBytes;
    return kUnit + (message_bytes + kUnit - 1) / kUnit * kUnit;
}

constexpr uint64_t bell_of(Fifo::Bell kind, uint32_t thread) noexcept {
    return static_cast<uint32_t>(kind) | uint64_t{thread} << 32;
}
constexpr uint64_t kNoBell = bell_of(Fifo::Bell::kNobody, 0);

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
            // It is not this thread, nor another frame of it, since signals are blocked: a handler
            // that pushes, too, would wait for the frame below it, or write into its message.
            const bool is_dead = seen == own_ || !sys::process_exists(static_cast<pid_t>(seen));
            if (is_dead && try_to_hold(seen)) return true;
            if (sys::now_ns() - begin_ns > patience_ns) return false;
            sys::yield_for_us(0);
        }
    }

    const sys::SignalBlock no_signals_;
    const uint32_t own_ = sys::own_thread_id();
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

// `position` counts from the beginning of all time and is that of a unit.  Word by word: who pops
// may read a place that is written anew, and finds out afterwards.
void Fifo::copy_in(uint64_t position, const std::byte* from, size_t bytes) const noexcept {
    const std::span<std::byte> all = ring();
    size_t place = position % all.size();
    for (size_t done = 0; done < bytes; done += sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, from + done, std::min(sizeof word, bytes - done));
        __atomic_store_n(reinterpret_cast<uint64_t*>(all.data() + place), word, __ATOMIC_RELAXED);
        place += sizeof word;
        if (place == all.size()) place = 0;
    }
}

void Fifo::copy_out(uint64_t position, std::byte* to, size_t bytes) const noexcept {
    const std::span<std::byte> all = ring();
    size_t place = position % all.size();
    for (size_t done = 0; done < bytes; done += sizeof(uint64_t)) {
        const auto* const at = reinterpret_cast<const uint64_t*>(all.data() + place);
        const uint64_t word = __atomic_load_n(at, __ATOMIC_RELAXED);
        std::memcpy(to + done, &word, std::min(sizeof word, bytes - done));
        place += sizeof word;
        if (place == all.size()) place = 0;
    }
}

hanare_status Fifo::push(std::span<const std::byte> message, uint64_t patience_ns) noexcept {
    if (!is_queue()) return HANARE_STATUS_CORRUPT;
    const uint64_t capacity = ring().size();
    const uint64_t needed = occupied_by(message.size());
    if (message.size() > capacity || needed > capacity) return HANARE_STATUS_OUT_OF_RANGE;
    const Lock lock(header().holder, patience_ns);
    if (!lock.is_held()) return HANARE_STATUS_BUSY;
    const uint64_t tail = header().tail.load(std::memory_order_relaxed);
    const uint64_t used = tail - header().head.load(std::memory_order_acquire);
    if (used > capacity || tail % kMessageBytes != 0) return HANARE_STATUS_CORRUPT;
    if (needed > capacity - used) return HANARE_STATUS_FULL;
    const uint64_t bytes = message.size();
    // Who reads what follows in the place of an older message sees that the head has moved.
    std::atomic_thread_fence(std::memory_order_release);
    copy_in(tail, reinterpret_cast<const std::byte*>(&bytes), sizeof bytes);
    copy_in(tail + kMessageBytes, message.data(), message.size());
    header().tail.store(tail + needed, std::memory_order_release);
    return HANARE_STATUS_OK;
}

bool Fifo::is_empty() const noexcept {
    return !is_queue() || header().head.load(std::memory_order_relaxed) ==
                              header().tail.load(std::memory_order_acquire);
}

// Copies the message at `head`, behind which `used` bytes lie.  Right if the head is still there.
hanare_status Fifo::look_at(uint64_t head, uint64_t used, std::span<std::byte> room,
                            uint64_t& message_bytes) const noexcept {
    message_bytes = 0;
    if (used == 0) return HANARE_STATUS_EMPTY;
    if (used > ring().size() || used < kMessageBytes || head % kMessageBytes != 0) {
        return HANARE_STATUS_CORRUPT;
    }
    copy_out(head, reinterpret_cast<std::byte*>(&message_bytes), sizeof message_bytes);
    if (message_bytes > used - kMessageBytes || occupied_by(message_bytes) > used) {
        return HANARE_STATUS_CORRUPT;
    }
    if (message_bytes > room.size()) return HANARE_STATUS_OUT_OF_RANGE;
    copy_out(head + kMessageBytes, room.data(), message_bytes);
    return HANARE_STATUS_OK;
}

hanare_status Fifo::pop(std::span<std::byte> room, size_t& bytes, uint64_t patience_ns) noexcept {
    if (!is_queue()) return HANARE_STATUS_CORRUPT;
    for (uint64_t begin_ns = 0;;) {
        uint64_t head = header().head.load(std::memory_order_acquire);
        const uint64_t used = header().tail.load(std::memory_order_acquire) - head;
        uint64_t message_bytes = 0;
        const hanare_status status = look_at(head, used, room, message_bytes);
        std::atomic_thread_fence(std::memory_order_acquire);
        const bool is_right =
            status == HANARE_STATUS_OK
                ? header().head.compare_exchange_strong(head, head + occupied_by(message_bytes))
                : header().head.load() == head;
        if (is_right) {
            if (status == HANARE_STATUS_OK || status == HANARE_STATUS_OUT_OF_RANGE) {
                bytes = message_bytes;
            }
            return status;
        }
        // Others get on; but they may also be one that writes nonsense.
        const uint64_t now_ns = sys::now_ns();
        if (begin_ns == 0) begin_ns = now_ns;
        if (now_ns - begin_ns > patience_ns) return HANARE_STATUS_BUSY;
    }
}

// ---- the bell

void Fifo::hang_bell(Bell bell, uint32_t thread) noexcept {
    header().bell.store(bell_of(bell, thread));
}

void Fifo::forget_holder() noexcept {
    if (is_queue()) header().holder.store(0);
}

void Fifo::sleep(int timeout_ms) noexcept {
    sys::shared_futex_wait(sleepers_word(), static_cast<uint32_t>(Bell::kSleeper), timeout_ms);
}

// Where the exchange fails somebody else rings, or the owner has hung it anew and looks after that.
void Fifo::ring_bell(int process) noexcept {
    if (!is_queue()) return;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    uint64_t hung = header().bell.load();
    const auto kind = static_cast<Bell>(static_cast<uint32_t>(hung));
    if (kind == Bell::kNobody || !header().bell.compare_exchange_strong(hung, kNoBell)) return;
    if (kind == Bell::kSleeper) {
        sys::shared_futex_wake_all(sleepers_word());
    } else if (!sys::signal_thread_of(process, static_cast<uint32_t>(hung >> 32), kBellSignal)) {
        // The thread is no more: whoever is told next must not be told by nobody.
        uint64_t nobody = kNoBell;
        header().bell.compare_exchange_strong(nobody, hung);
    }
}

}  // namespace hanare::fabric
