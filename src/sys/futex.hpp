// SPDX-License-Identifier: Apache-2.0
//
// futex(2) on 32-bit words.  Async-signal-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace hanare::sys {

// Sleeps while *word == expected, at most `timeout_ms` (negative: no limit).  Returns on wake-up,
// value change, signal or time-out alike: the caller looks at the word again.
void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected, int timeout_ms = -1) noexcept;

void futex_wake(const std::atomic<uint32_t>& word, int threads) noexcept;
inline void futex_wake_all(const std::atomic<uint32_t>& word) noexcept {
    futex_wake(word, INT32_MAX);
}

// The same on words in memory that other processes may have mapped, too.
void shared_futex_wait(const std::atomic<uint32_t>& word, uint32_t expected,
                       int timeout_ms = -1) noexcept;
void shared_futex_wake_all(const std::atomic<uint32_t>& word) noexcept;

// Whether futex(2) with this operation takes a time limit, and a second word.
bool has_futex_timeout(int operation) noexcept;
bool has_second_futex(int operation) noexcept;

}  // namespace hanare::sys
