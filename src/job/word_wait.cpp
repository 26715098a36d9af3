// SPDX-License-Identifier: Apache-2.0
#include "job/word_wait.hpp"

#include <algorithm>

#include "sys/clock.hpp"
#include "sys/futex.hpp"

namespace hanare::job {
namespace {

// How long a change that wakes nobody is not noticed.
constexpr int kPollMs = 1;
constexpr int kSleepMsMax = 1'000'000;

}  // namespace

uint64_t deadline_after(int timeout_ms) noexcept {
    if (timeout_ms < 0) return kNoDeadline;
    return sys::now_ns() + static_cast<uint64_t>(timeout_ms) * kNsPerMs;
}

int ms_until(uint64_t deadline_ns, int most_ms) noexcept {
    if (deadline_ns == kNoDeadline) return most_ms;
    const uint64_t now = sys::now_ns();
    if (now >= deadline_ns) return 0;
    const uint64_t left_ms = (deadline_ns - now + kNsPerMs - 1) / kNsPerMs;
    return static_cast<int>(std::min<uint64_t>(left_ms, static_cast<uint64_t>(most_ms)));
}

void make_waking(fabric::Operation& fetch) noexcept { fetch.wakes = true; }

void wake_waiters(std::atomic<uint32_t>& word) noexcept { sys::shared_futex_wake_all(word); }

void wait_for_change(const std::atomic<uint32_t>& word, uint32_t seen, uint64_t deadline_ns,
                     Changes changes) noexcept {
    const int timeout_ms =
        ms_until(deadline_ns, changes == Changes::kWaking ? kSleepMsMax : kPollMs);
    if (timeout_ms > 0) sys::shared_futex_wait(word, seen, timeout_ms);
}

}  // namespace hanare::job
