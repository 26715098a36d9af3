// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous transfers by io_submit(2), by raw system calls.  Unlike those of an io_uring they
// belong to the process and not to a thread: any thread may start and collect them, one that ends
// cancels nothing, and a completion interrupts nobody.  They are asynchronous only where the file
// is used directly (O_DIRECT).  Nothing of it exists in the child of a fork.
//
// Any thread, async-signal-safe; collect() by one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hanare::sys {

class Aio {
public:
    struct Transfer {
        uint64_t offset = 0;
        std::byte* memory = nullptr;
        size_t bytes = 0;
        uint64_t tag = 0;
        bool writes = false;
    };
    struct Completion {
        uint64_t tag = 0;
        int64_t result = 0;  // bytes, or a negative errno value
    };
    static constexpr size_t kStartMax = 16;

    enum class Kind {
        kMany,  // at most kManyTransfers in flight
        kOne,   // one, and start() by one thread at a time
    };
    static constexpr uint32_t kManyTransfers = 512;

    // Of `file`, which stays open as long as this.  Nothing is asked of the kernel before the first
    // transfer: a process that has a context takes tens of milliseconds to end.
    Aio(Kind kind, int file) : kind_(kind), file_(file) {}
    Aio(const Aio&) = delete;
    Aio& operator=(const Aio&) = delete;
    // Waits for what is in flight.
    ~Aio();

    // The kernel has refused a context, and will not be asked again.
    bool is_refused() const noexcept {
        return is_refused_.load(std::memory_order_relaxed) &&
               context_.load(std::memory_order_relaxed) == 0;
    }

    // Starts transfers in this order, at most kStartMax; returns how many: fewer if the kernel
    // refuses.
    size_t start(const Transfer* transfers, size_t count) noexcept;

    // Up to `count` completions.  `wait`: sleeps until there is one; may return none after a
    // signal.
    size_t collect(Completion* completions, size_t count, bool wait) noexcept;

    // Whether nothing can be collected now; never so where the kernel's ring is of another kind
    // than known here.
    bool is_empty() const noexcept;

private:
    uint64_t set_up() noexcept;

    const Kind kind_;
    const int file_;
    // The address of a ring in memory that is shared with the kernel; 0: none yet.
    std::atomic<uint64_t> context_{0};
    std::atomic<bool> is_refused_{false};
    std::atomic<int64_t> in_flight_{0};
};

}  // namespace hanare::sys
