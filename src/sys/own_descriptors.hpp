// SPDX-License-Identifier: Apache-2.0
//
// The descriptors that Hanare uses in a program which does not know of them: high numbers, so that
// the program's own come out as without Hanare, and known, so that a program that closes all it may
// have open leaves them alone (intercept/handler.cpp).  Kept only after begin().
// Any thread, async-signal-safe, no vector registers.
#pragma once

#include <array>
#include <atomic>

namespace hanare::sys {

class OwnDescriptors {
public:
    static constexpr int kFloor = 1000;

    void begin() noexcept { on_.store(true, std::memory_order_relaxed); }
    bool is_on() const noexcept { return on_.load(std::memory_order_relaxed); }

    void add(int number) noexcept {
        if (!is_on() || number < 0) return;
        int lowest = lowest_.load();
        while (number < lowest && !lowest_.compare_exchange_weak(lowest, number)) {
        }
        for (std::atomic<int>& entry : entries_) {
            int free = 0;
            if (entry.compare_exchange_strong(free, number + 1)) return;
        }
    }
    void remove(int number) noexcept {
        if (!is_on()) return;
        for (std::atomic<int>& entry : entries_) {
            int seen = number + 1;
            if (entry.compare_exchange_strong(seen, 0)) return;
        }
    }
    bool contain(int number) const noexcept {
        if (number < lowest_.load(std::memory_order_relaxed)) return false;  // as most are
        for (const std::atomic<int>& entry : entries_) {
            if (entry.load(std::memory_order_relaxed) == number + 1) return true;
        }
        return false;
    }
    // The lowest that is at least `from`; INT_MAX if there is none.
    int next(int from) const noexcept {
        int lowest = __INT_MAX__;
        for (const std::atomic<int>& entry : entries_) {
            const int number = entry.load(std::memory_order_relaxed) - 1;
            if (number >= from && number < lowest) lowest = number;
        }
        return lowest;
    }

private:
    std::atomic<bool> on_{false};
    std::atomic<int> lowest_{__INT_MAX__};          // that was ever added
    std::array<std::atomic<int>, 1024> entries_{};  // one more than the number; 0: free
};

inline constinit OwnDescriptors own_descriptors;

}  // namespace hanare::sys
