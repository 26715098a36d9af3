// SPDX-License-Identifier: Apache-2.0
//
// A lock among the threads of a task, or of all tasks, for code that runs in the place of a system
// call: no libc, no vector registers.  All signals are blocked while it is held, since their
// handlers may map memory too.  Who finds that the holder has been killed takes it over.  One that
// is stopped keeps it: locks of all tasks are waited for with an end.
#pragma once

#include <atomic>
#include <cstdint>

namespace hanare::space {

class TurnLock {
public:
    static constexpr uint32_t kForever = ~0u;

    // False: somebody else, always the same, has kept it all that time.
    bool lock(uint32_t patience_ms = kForever) noexcept;
    void unlock() noexcept;
    // Whoever had it is no more.
    void reset() noexcept { holder_.store(0); }

private:
    static constexpr uint32_t kIsAwaited = 1u << 31;

    void wait_for(uint32_t holder, uint32_t& patience_ms) noexcept;

    std::atomic<uint32_t> holder_{0};  // a thread, and whether somebody sleeps until it is done
    uint64_t mask_ = 0;                // of the holder, as it was
};

class TurnGuard {
public:
    explicit TurnGuard(TurnLock& lock, uint32_t patience_ms = TurnLock::kForever) noexcept
        : lock_(lock), is_held_(lock.lock(patience_ms)) {}
    ~TurnGuard() {
        if (is_held_) lock_.unlock();
    }
    TurnGuard(const TurnGuard&) = delete;
    TurnGuard& operator=(const TurnGuard&) = delete;

    bool is_held() const noexcept { return is_held_; }

private:
    TurnLock& lock_;
    const bool is_held_;
};

}  // namespace hanare::space
