// SPDX-License-Identifier: Apache-2.0
//
// Waiting until a word changes that a peer changes, and asking that whoever waits is woken.  Any
// thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "fabric/operation.hpp"

namespace hanare::job {

// As sys::now_ns().
inline constexpr uint64_t kNoDeadline = fabric::Operation::kNoDeadline;
inline constexpr uint64_t kNsPerMs = 1'000'000;

// What `timeout_ms` from now is; negative: never.
uint64_t deadline_after(int timeout_ms) noexcept;
// What is left of it, rounded up; `most_ms` where that is less.
int ms_until(uint64_t deadline_ns, int most_ms) noexcept;

// Whoever waits for the word of this fetch-op is woken when it has changed.
void make_waking(fabric::Operation& fetch) noexcept;
// The same for a change by this process.
void wake_waiters(std::atomic<uint32_t>& word) noexcept;

// How the word is changed: by what make_waking() or wake_waiters() accompanies, or in any way.
enum class Changes { kWaking, kAny };
// Sleeps until the word is not `seen` any more, or the deadline.  May return earlier: the caller
// looks again.
void wait_for_change(const std::atomic<uint32_t>& word, uint32_t seen, uint64_t deadline_ns,
                     Changes changes) noexcept;

}  // namespace hanare::job
