// SPDX-License-Identifier: Apache-2.0
//
// The handshake between the one thread that waits in a channel and those that notify it.  A
// notification before the wait is remembered; one that nobody sleeps for costs one atomic
// operation and no system call.
//
// begin_wait() ... end_wait() surround the sleep; notify() is for any thread, async-signal-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace hanare::store {

class Wakeup {
public:
    static constexpr uint32_t kAwake = 0;
    static constexpr uint32_t kAsleep = 1;
    static constexpr uint32_t kNotified = 2;

    // True when the caller must wake the sleeper.  It may have woken up by itself meanwhile.
    bool notify() noexcept { return state_.exchange(kNotified) == kAsleep; }

    // False when there is no need to sleep: notified already.
    bool begin_wait() noexcept {
        uint32_t awake = kAwake;
        return state_.compare_exchange_strong(awake, kAsleep);
    }
    // True when notified.  Called before a wait returns in any case: the notification is then
    // used up, because the caller is about to look at whatever it was about.
    bool end_wait() noexcept { return state_.exchange(kAwake) == kNotified; }

    // The word to sleep on, while it is kAsleep.
    const std::atomic<uint32_t>& word() const noexcept { return state_; }

private:
    std::atomic<uint32_t> state_{kAwake};
};

// The end of a wait with a time-out; negative: never.
class Deadline {
public:
    explicit Deadline(int timeout_ms) noexcept
        : limited_(timeout_ms >= 0), end_(Clock::now() + std::chrono::milliseconds(timeout_ms)) {}

    // Negative when there is no limit; 0 only when the time is over.
    int remaining_ms() const noexcept {
        if (!limited_) return -1;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
        return left > 0 ? static_cast<int>(left) : 0;
    }

private:
    using Clock = std::chrono::steady_clock;

    bool limited_;
    Clock::time_point end_;
};

}  // namespace hanare::store
