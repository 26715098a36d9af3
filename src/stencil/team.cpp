// SPDX-License-Identifier: Apache-2.0
#include "stencil/team.hpp"

#include <immintrin.h>
#include <sched.h>

#include <system_error>
#include <thread>
#include <vector>

#include "sys/signal.hpp"

namespace hanare::stencil {

namespace {

constexpr uint32_t kLooks = 500;

// Keeps the calling thread on the number-th of the processors that it may use, for its life.
class Pin {
public:
    Pin(bool is_wanted, uint32_t number) noexcept {
        if (!is_wanted || sched_getaffinity(0, sizeof saved_, &saved_) != 0) return;
        const auto count = static_cast<uint32_t>(CPU_COUNT(&saved_));
        uint32_t left = count > 0 ? number % count : 0;
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (!CPU_ISSET(static_cast<size_t>(cpu), &saved_) || left-- > 0) continue;
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(static_cast<size_t>(cpu), &one);
            is_set_ = sched_setaffinity(0, sizeof one, &one) == 0;
            return;
        }
    }
    ~Pin() {
        if (is_set_) sched_setaffinity(0, sizeof saved_, &saved_);
    }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;

private:
    cpu_set_t saved_;
    bool is_set_ = false;
};

}  // namespace

void run_on(uint32_t threads, bool is_pinned, const std::function<void()>& body) {
    std::vector<std::jthread> others;
    others.reserve(threads);
    try {
        const sys::SignalBlockButFaults block;  // the threads inherit it
        for (uint32_t i = 1; i < threads; ++i) {
            others.emplace_back([&body, is_pinned, i] {
                const Pin pin(is_pinned, i);
                body();
            });
        }
    } catch (const std::system_error&) {
        // With those that there are.
    }
    const Pin pin(is_pinned, 0);
    body();
}

void Patience::wait() noexcept {
    if (++looks_ < kLooks) {
        _mm_pause();
        return;
    }
    looks_ = 0;
    sched_yield();
}

}  // namespace hanare::stencil
