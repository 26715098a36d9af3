// SPDX-License-Identifier: Apache-2.0
//
// TimedLock: a lock for which a thread waits until a deadline, since its holder may wait for other
// tasks.  Any ordinary thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "job/word_wait.hpp"

namespace hanare::job {

class TimedLock {
public:
    // Held, or not: the deadline has passed.
    class Guard {
    public:
        Guard(TimedLock& lock, uint64_t deadline_ns)
            : lock_(lock), is_held_(lock.take(deadline_ns)) {}
        ~Guard() {
            if (is_held_) lock_.give_back();
        }
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;
        explicit operator bool() const noexcept { return is_held_; }

    private:
        TimedLock& lock_;
        const bool is_held_;
    };

private:
    static constexpr int kLookMs = 60'000;

    bool take(uint64_t deadline_ns) {
        std::unique_lock guard(lock_);
        while (is_held_) {
            const int left_ms = ms_until(deadline_ns, kLookMs);
            if (left_ms == 0) return false;
            free_.wait_for(guard, std::chrono::milliseconds(left_ms));
        }
        is_held_ = true;
        return true;
    }
    void give_back() {
        {
            const std::lock_guard guard(lock_);
            is_held_ = false;
        }
        free_.notify_one();
    }

    std::mutex lock_;
    std::condition_variable free_;
    bool is_held_ = false;  // under lock_
};

}  // namespace hanare::job
