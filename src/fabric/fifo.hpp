// SPDX-License-Identifier: Apache-2.0
//
// Fifo: a queue of messages in exposed memory (MBCF: memory-based FIFO; many producers, and
// consumers, may be in other processes that have the memory mapped).  Full and empty are answers,
// not waits.
//
// Who pushes holds its lock, a word with the holder's thread id.  A message counts from the moment
// the tail moves behind it, so that a process that is killed in between leaves the queue as it was:
// whoever finds the lock held by a thread that is no more takes it over.  Where its number was
// given to another thread meanwhile, or nobody has waited for the dead process yet, that does not
// show: BUSY until then.  All who use a queue have to be in one namespace of processes.
//
// Who pops holds nothing.  It copies the oldest message and then moves the head behind it, if that
// is where it was; if not, another one was faster, and what was copied is nobody's.  So it makes no
// system call: who looks for signals all the time (signal_queue.hpp) pays only for what has come.
//
// What other processes can write is not believed: indices and lengths are checked, and a queue that
// makes no sense is CORRUPT, never read or written outside.  Any thread, async-signal-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hanare/status.h"

namespace hanare::fabric {

class Fifo {
public:
    static constexpr size_t kHeaderBytes = 256;
    static constexpr size_t kAlignment = 64;
    // What a message takes besides itself, rounded up to as much.
    static constexpr size_t kMessageBytes = 8;

    // Makes an empty queue of the memory, in which messages of all sizes share what the header
    // leaves.  INVALID_ARGUMENT: not aligned, or no room for a message.
    static hanare_status format(std::span<std::byte> memory) noexcept;

    // Whether it is a queue shows when it is used.
    explicit Fifo(std::span<std::byte> memory) noexcept : memory_(memory) {}

    // Whether there is none, at a glance; also what is no queue is empty.
    bool is_empty() const noexcept;

    // How long another thread may hold the lock, which takes it far less unless it does not run.
    static constexpr uint64_t kPatience_ns = 2'000'000;

    // FULL; OUT_OF_RANGE: would not fit if it were empty; BUSY: another thread has held the lock
    // for longer than a push takes, being stopped or waiting for a processor; CORRUPT.
    hanare_status push(std::span<const std::byte> message,
                       uint64_t patience_ns = kPatience_ns) noexcept;
    // The oldest message.  EMPTY; OUT_OF_RANGE: it is longer than the room, `bytes` says how long,
    // and stays; BUSY: others have popped all the time; CORRUPT.  Unless OK the room is
    // unspecified.
    hanare_status pop(std::span<std::byte> room, size_t& bytes,
                      uint64_t patience_ns = kPatience_ns) noexcept;

    // The bell: how whoever the queue belongs to wants to hear of a signal (operation.hpp), once.
    // Nobody: looks from time to time.  Thread: it is sent kBellSignal.  Sleeper: in sleep().
    enum class Bell : uint32_t { kNobody = 0, kThread = 1, kSleeper = 2 };
    // One of the kernel's real-time signals that libc leaves to programs.
    static constexpr int kBellSignal = 60;
    // By the owner, who looks for messages after this and before it relies on it; `thread` is one
    // of its threads.
    void hang_bell(Bell bell, uint32_t thread = 0) noexcept;
    // Sleeps until the bell has rung since it was hung for a sleeper, or the time is over
    // (negative: no limit), or for no reason.
    void sleep(int timeout_ms) noexcept;
    // When nobody else has the memory any more: whoever held the lock has it in other memory.
    void forget_holder() noexcept;
    // By who has pushed, or found the queue full: at most one of many rings.  `process` is the
    // owner's.
    void ring_bell(int process) noexcept;

private:
    struct Header {
        std::atomic<uint64_t> magic;
        // How to tell the owner (4 bytes, on which it sleeps) and which thread of it: one word, so
        // that nobody rings for one thread by what was hung for another.
        std::atomic<uint64_t> bell;
        alignas(kAlignment) std::atomic<uint32_t> holder;  // 0: nobody
        alignas(kAlignment) std::atomic<uint64_t> head;    // bytes that were popped, ever
        alignas(kAlignment) std::atomic<uint64_t> tail;    // bytes that were pushed
    };
    static_assert(sizeof(Header) == kHeaderBytes);
    class Lock;

    // Bytes of the ring: known from the memory, not from what is in it.
    static size_t capacity_of(std::span<std::byte> memory) noexcept {
        return (memory.size() - kHeaderBytes) / kMessageBytes * kMessageBytes;
    }
    std::span<std::byte> ring() const noexcept {
        return memory_.subspan(kHeaderBytes, capacity_of(memory_));
    }
    Header& header() const noexcept { return *reinterpret_cast<Header*>(memory_.data()); }
    bool is_queue() const noexcept;
    const std::atomic<uint32_t>& sleepers_word() const noexcept {
        const std::byte* const place = memory_.data() + offsetof(Header, bell);
        return *reinterpret_cast<const std::atomic<uint32_t>*>(place);
    }
    void copy_in(uint64_t position, const std::byte* from, size_t bytes) const noexcept;
    void copy_out(uint64_t position, std::byte* to, size_t bytes) const noexcept;
    hanare_status look_at(uint64_t head, uint64_t used, std::span<std::byte> room,
                          uint64_t& message_bytes) const noexcept;

    const std::span<std::byte> memory_;
};

}  // namespace hanare::fabric
