// SPDX-License-Identifier: Apache-2.0
//
// SignalQueue: what peers signal to this process, and the handlers that run for it (MBCF: the
// memory-based signal calls a routine of the target's).  A signal is a message to a queue whose
// owner is told of it: a thread that computes is interrupted, one that sleeps in wait() is woken,
// and who looks by itself now and then (poll()) costs nobody a system call.
//
// Handlers that interrupt are signal handlers: they may call what is async-signal-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "fabric/exposed_regions.hpp"
#include "fabric/fifo.hpp"
#include "fabric/operation.hpp"
#include "sys/memory.hpp"

namespace hanare::fabric {

class SignalQueue {
public:
    // What a message is: the handler's number, and behind it the arguments.
    struct Header {
        uint32_t handler = 0;
        uint32_t unused = 0;
    };
    static constexpr size_t kArgumentBytesMax = kMessageBytesMax - sizeof(Header);
    static constexpr uint32_t kHandlersMax = 64;
    using Handler = void (*)(void* context, std::span<const std::byte> arguments);

    // The regions live longer.  `bytes`: of the queue.
    static Result<std::unique_ptr<SignalQueue>> open(ExposedRegions& regions, size_t bytes);
    ~SignalQueue();
    SignalQueue(const SignalQueue&) = delete;
    SignalQueue& operator=(const SignalQueue&) = delete;

    // The queue's own.
    std::span<std::byte> memory() const noexcept { return {memory_.address(), memory_.bytes()}; }
    // With it peers can signal, and do nothing else.
    const Capability& capability() const noexcept { return capability_; }

    // OUT_OF_RANGE: the number.  Null: signals with that number are dropped, as at first.  Any
    // thread; one that runs the handler before may run it still.
    hanare_status set_handler(uint32_t number, Handler handler, void* context);

    // From now on, until it ends, handlers run in the calling thread, whatever it does.  BUSY:
    // another queue of this process does that, or the program uses the signal Fifo::kBellSignal.
    Result<void> interrupt_this_thread();
    // From now on they run in poll() and wait() only.  Waits for a handler that runs in another
    // thread.
    void stop_interrupting() noexcept;

    // Runs the handlers of all that has come; how many.  Any thread.
    uint32_t poll() noexcept;
    // Sleeps until something has come since poll() or wait() was called last, and its handlers have
    // run; TIMEOUT.  One thread at a time, the one that is interrupted if there is one.
    hanare_status wait(uint64_t deadline_ns) noexcept;

private:
    // Never changed, and kept as long as the queue: somebody may be about to call it.
    struct Entry {
        Handler handler;
        void* context;
    };

    SignalQueue(ExposedRegions& regions, sys::Mapping memory, uint32_t region,
                const Capability& capability) noexcept
        : regions_(regions),
          memory_(std::move(memory)),
          queue_({memory_.address(), memory_.bytes()}),
          region_(region),
          capability_(capability) {}

    struct EndOfThread;
    static void on_bell(int) noexcept;
    static void on_end_of_thread() noexcept;
    void hang_bell() noexcept;
    uint32_t run_handlers() noexcept;
    bool has_handled() noexcept;
    void run_handler(std::span<const std::byte> message) noexcept;

    ExposedRegions& regions_;
    const sys::Mapping memory_;
    Fifo queue_;
    const uint32_t region_;
    const Capability capability_;
    std::array<std::atomic<const Entry*>, kHandlersMax> handlers_{};
    std::mutex lock_;                              // setting handlers
    std::vector<std::unique_ptr<Entry>> entries_;  // under lock_
    std::atomic<uint32_t> thread_{0};              // that is interrupted
    std::atomic<uint32_t> handled_{0};             // messages
    std::atomic<uint32_t> noticed_{0};             // of these, by who polls or waits
};

}  // namespace hanare::fabric
