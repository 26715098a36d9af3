// SPDX-License-Identifier: Apache-2.0
//
// Operation: what one task wants done to memory that another one exposes, and how it went (MBCF:
// remote memory operations of any size, fetch-op, FIFO, signal), or asks it (call_handler.hpp). The
// object, and the memory that it names, are the caller's and stay as they are until the operation
// is done; nothing here allocates. Done with status OK means: applied at the target, and the target
// has said so.  With TIMEOUT or PEER_LOST it may have been applied, or will be; of a put of more
// than 1 KiB a part, whatever the failure.  What an operation names is local memory, or pinned.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/capability.hpp"
#include "hanare/status.h"

namespace hanare::fabric {

// The values are those on the wire.
enum class Kind : uint8_t {
    kPut = 1,
    kGet = 2,
    kFetch = 3,
    kPush = 4,
    kPop = 5,
    kSignal = 6,  // a push, and whoever the queue belongs to is told (fifo.hpp)
    kCall = 7,    // a question to the process, and its answer (call_handler.hpp); no capability
};

// Whether it is on a queue, all of a region.
constexpr bool is_on_queue(Kind kind) noexcept {
    return kind == Kind::kPush || kind == Kind::kPop || kind == Kind::kSignal;
}

// Of a queue's message, of a call and of its answer.
inline constexpr uint32_t kMessageBytesMax = 2048;

// What a fetch-op makes of the word w; all return what it was before.
enum class FetchOp : uint8_t {
    kAdd = 1,          // w + operand
    kAnd = 2,          // w & operand
    kOr = 3,           // w | operand
    kXor = 4,          // w ^ operand
    kSwap = 5,         // operand
    kCompareSwap = 6,  // operand if w == compare
};

class TcpLink;

class Operation {
public:
    static constexpr uint64_t kNoDeadline = UINT64_MAX;

    Operation() = default;
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    Kind kind = Kind::kPut;
    Capability capability;
    uint64_t offset = 0;  // in the region; a queue is a region
    uint64_t deadline_ns = kNoDeadline;

    std::span<const std::byte> source;  // put, push, signal, call
    // Get, pop, and what a call is answered; unspecified if it fails, and behind a message.
    std::span<std::byte> destination;

    FetchOp fetch_op = FetchOp::kAdd;
    // Bytes of the word, 4 or 8; its address at the target is a multiple of that.
    uint8_t width = sizeof(uint64_t);
    uint64_t operand = 0;
    uint64_t compare = 0;
    // Who sleeps at the target until the word changes (sys::shared_futex_wait) is woken.
    bool wakes = false;

    bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }
    // These once it is done.
    hanare_status status() const noexcept { return status_; }
    // Of a fetch-op: the word before; of a pop: bytes of the message, also when there was no room;
    // of a call: bytes of the answer.
    uint64_t value() const noexcept { return value_; }

    // What it moves, or may.
    uint64_t bytes() const noexcept {
        switch (kind) {
            case Kind::kPut:
            case Kind::kPush:
            case Kind::kSignal:
            case Kind::kCall: return source.size();
            case Kind::kGet: return destination.size();
            case Kind::kPop: return std::min<uint64_t>(destination.size(), kMessageBytesMax);
            case Kind::kFetch: return width;
        }
        return 0;
    }

    // For who carries it out.  The first failure stands.
    void note_failure(hanare_status status) noexcept {
        if (status_ == HANARE_STATUS_OK) status_ = status;
    }
    void note_value(uint64_t value) noexcept { value_ = value; }
    // The object may be gone when this returns.
    void finish() noexcept { done_.store(true, std::memory_order_release); }

private:
    friend class TcpLink;

    std::atomic<bool> done_{false};
    hanare_status status_ = HANARE_STATUS_OK;
    uint64_t value_ = 0;
    // Of the link that carries it out, under its locks.
    Operation* next_ = nullptr;
    uint64_t requested_bytes_ = 0;  // for how much there are requests
    uint64_t unanswered_ = 0;       // requests, made or not, without their answer
};

// Whether that is a fetch-op on a word.
bool is_fetch(FetchOp op, uint64_t width) noexcept;
// What is wrong with an operation, whoever the target is: INVALID_ARGUMENT, OUT_OF_RANGE.
hanare_status check(const Operation& operation) noexcept;

}  // namespace hanare::fabric
