// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/holds.hpp"

#include <cerrno>

#include "sys/raw_thread.hpp"

namespace hanare::pager {

constinit Holds holds;
constinit thread_local void* Holds::own_ = nullptr;

namespace {

// A frame below on the same stack is not farther away; what is, may be on another stack.
constexpr uintptr_t kSameStackBytes = uintptr_t{256} << 10;

}  // namespace

Holds::Thread* Holds::own_thread() noexcept {
    if (own_ != nullptr) return static_cast<Thread*>(own_);
    if (sys::borrows_memory()) return nullptr;
    const uint32_t id = sys::raw_thread_id();
    for (uint32_t index = 0; index < kThreadsMax; ++index) {
        Thread& thread = threads_[index];
        uint32_t owner = thread.owner.load(std::memory_order_relaxed);
        if (owner != 0 && owner != id && sys::raw_thread_lives(owner)) continue;
        if (!thread.owner.compare_exchange_strong(owner, id)) continue;
        for (Hold& hold : thread.holds) release(hold);
        uint32_t count = count_.load();
        while (count <= index && !count_.compare_exchange_weak(count, index + 1)) {
        }
        own_ = &thread;
        return &thread;
    }
    return nullptr;
}

void Holds::drop_left(uintptr_t stack) noexcept {
    if (own_ == nullptr) return;
    for (Hold& hold : static_cast<Thread*>(own_)->holds) {
        const uintptr_t other = hold.stack.load(std::memory_order_relaxed);
        if (other <= stack && stack - other <= kSameStackBytes) release(hold);
    }
}

Holds::Hold* Holds::publish(uintptr_t begin, uintptr_t end, uintptr_t stack) noexcept {
    Thread* const thread = own_thread();
    if (thread == nullptr) return nullptr;
    for (Hold& hold : thread->holds) {
        if (hold.end.load(std::memory_order_relaxed) != 0) continue;
        claim(hold, begin, stack);
        hold.end.exchange(end, std::memory_order_seq_cst);
        return &hold;
    }
    return nullptr;
}

bool Holds::cover_slow(const std::byte* memory, size_t bytes, uint32_t count) const noexcept {
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    for (uint32_t index = 0; index < count; ++index) {
        for (const Hold& hold : threads_[index].holds) {
            const uintptr_t end = hold.end.load(std::memory_order_seq_cst);
            if (end > begin && hold.begin.load(std::memory_order_relaxed) < begin + bytes) {
                return true;
            }
        }
    }
    return false;
}

// Taken over for the moment, so that nobody else does and holds something already.
void Holds::release_dead() noexcept {
    if (sys::borrows_memory()) return;
    const uint32_t id = sys::raw_thread_id();
    const uint32_t count = count_.load(std::memory_order_acquire);
    for (uint32_t index = 0; index < count; ++index) {
        Thread& thread = threads_[index];
        uint32_t owner = thread.owner.load(std::memory_order_relaxed);
        if (owner == 0 || owner == id || sys::raw_thread_lives(owner)) continue;
        if (!thread.owner.compare_exchange_strong(owner, id)) continue;
        for (Hold& hold : thread.holds) release(hold);
        thread.owner.store(0);
    }
}

void Holds::forget_others_in_child() noexcept {
    const uint32_t count = count_.load();
    for (uint32_t index = 0; index < count; ++index) {
        Thread& thread = threads_[index];
        if (&thread == own_) {
            thread.owner.store(sys::raw_thread_id());
            continue;
        }
        for (Hold& hold : thread.holds) release(hold);
        thread.owner.store(0);
    }
}

}  // namespace hanare::pager
