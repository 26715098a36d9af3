// SPDX-License-Identifier: Apache-2.0
//
// Holds: memory that the kernel is about to read or write for a system call, and which therefore
// must not leave.  Each thread publishes what it needs in slots of its own (hazard pointers,
// Michael, 2004); who evicts looks at all of them once it has entered kWithdrawing, and leaves the
// block alone if one covers it.  The thread looks at the block's word after it has published, so
// that one of the two sees the other.
//
// Nothing is counted, so a thread that leaves a system call by longjmp, cancellation or exec, or
// dies, strands nothing: its slots are taken over by whoever comes next.  Async-signal-safe;
// compiled for general registers only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hanare::pager {

class Holds {
public:
    static constexpr uint32_t kThreadsMax = 1024;
    static constexpr uint32_t kPerThread = 8;

    struct Hold {
        std::atomic<uintptr_t> begin{0};
        std::atomic<uintptr_t> end{0};    // 0: nothing is held
        std::atomic<uintptr_t> stack{0};  // the stack pointer of who holds
    };

    // From now on [begin, end) does not leave, once it is there.  `stack`: the caller's stack
    // pointer.  nullptr where there are too many threads or holds.
    Hold* publish(uintptr_t begin, uintptr_t end, uintptr_t stack) noexcept;
    // The same of a thread that has published before and holds nothing; nullptr for others.
    // `is_alone`: there is no other thread, of whomever.
    [[gnu::always_inline]] Hold* publish_only(uintptr_t begin, uintptr_t end, uintptr_t stack,
                                              bool is_alone) noexcept {
        auto* const thread = static_cast<Thread*>(own_);
        if (thread == nullptr) return nullptr;
        Hold& hold = thread->holds[0];
        if (hold.end.load(std::memory_order_relaxed) != 0) return nullptr;
        claim(hold, begin, stack);
        if (is_alone) {
            hold.end.store(end, std::memory_order_relaxed);
            std::atomic_signal_fence(std::memory_order_seq_cst);
        } else {
            hold.end.exchange(end, std::memory_order_seq_cst);
        }
        return &hold;
    }
    // Whether the calling thread has published before.
    bool know_caller() const noexcept { return own_ != nullptr; }
    // A system call begins: what the calling thread still holds for calls at that stack pointer, or
    // below on the same stack, was left without being released.
    void drop_left(uintptr_t stack) noexcept;
    static void release(Hold& hold) noexcept { hold.end.store(0, std::memory_order_release); }

    // Whether somebody holds a byte of it.
    bool cover(const std::byte* memory, size_t bytes) const noexcept {
        const uint32_t count = count_.load(std::memory_order_acquire);
        return count != 0 && cover_slow(memory, bytes, count);
    }

    // The same, without what threads have left that are gone.  For whoever would fail otherwise.
    bool living_cover(const std::byte* memory, size_t bytes) noexcept {
        if (!cover(memory, bytes)) return false;
        release_dead();
        return cover(memory, bytes);
    }

    // What threads have left that are gone.
    void release_dead() noexcept;

    // In the child of a fork: what other threads held is over.
    void forget_others_in_child() noexcept;

private:
    // Of the own thread's: a signal handler that publishes meanwhile takes another one.
    [[gnu::always_inline]] static void claim(Hold& hold, uintptr_t begin,
                                             uintptr_t stack) noexcept {
        hold.end.store(UINTPTR_MAX, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        hold.stack.store(stack, std::memory_order_relaxed);
        hold.begin.store(begin, std::memory_order_relaxed);
    }

    struct alignas(64) Thread {
        std::atomic<uint32_t> owner{0};
        Hold holds[kPerThread];
    };

    bool cover_slow(const std::byte* memory, size_t bytes, uint32_t count) const noexcept;
    Thread* own_thread() noexcept;
    [[gnu::tls_model("initial-exec")]] static thread_local constinit void* own_;

    Thread threads_[kThreadsMax];
    std::atomic<uint32_t> count_{0};  // of threads_ that have been in use
};

// The process's.
extern Holds holds;

}  // namespace hanare::pager
