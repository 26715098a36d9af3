// SPDX-License-Identifier: Apache-2.0
//
// Spinning: waits for a device for as long as a fast one needs, where a sleep would take longer. It
// remembers whether that helped, and on a slow device only tries again from time to time.
//
// Any thread, fault handlers included.
#pragma once

#include <atomic>
#include <cstdint>

#include "sys/clock.hpp"

namespace hanare::pager {

class Spinning {
public:
    // Not at all where another thread could not run meanwhile.
    explicit Spinning(bool is_useful) noexcept : is_useful_(is_useful) {}

    // Whether done() became true within the time.
    template <typename Done>
    bool until(Done done) noexcept {
        if (!begins()) return done();
        for (const uint64_t end_ns = sys::now_ns() + kSpinNs; sys::now_ns() < end_ns;) {
            if (done()) {
                vain_.store(0, std::memory_order_relaxed);
                return true;
            }
            __builtin_ia32_pause();
        }
        return done();
    }

private:
    static constexpr uint64_t kSpinNs = 100'000;
    static constexpr uint32_t kVainMax = 8;  // in a row, after which
    static constexpr uint32_t kRarely = 64;  // one wait of so many spins

    // Counts the wait as vain until it turns out otherwise.
    bool begins() noexcept {
        if (!is_useful_) return false;
        const uint32_t vain = vain_.fetch_add(1, std::memory_order_relaxed);
        return vain < kVainMax || vain % kRarely == 0;
    }

    const bool is_useful_;
    std::atomic<uint32_t> vain_{0};
};

}  // namespace hanare::pager
