// SPDX-License-Identifier: Apache-2.0
//
// FaultTransfers: reads that faulting threads start ahead of a stream, and writes of what they
// evict. They complete them themselves: whoever faults next takes what has arrived, and who needs a
// block that has not waits for the device and not for another thread.  So a stream goes on at full
// speed when no core is left for the keeper, and no wake-up lies between the device and the fault.
//
// One thread at a time completes (it leads); the others wait until it has completed something or
// has stopped, and then one of them leads.
//
// Any thread, fault handlers included.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "pager/fault/frame.hpp"
#include "pager/fault/spinning.hpp"
#include "store/store.hpp"
#include "sys/futex.hpp"
#include "sys/lock.hpp"

namespace hanare::pager {

class Pager;

class FaultTransfers {
public:
    static constexpr uint64_t kReadBytesMax = uint64_t{64} << 20;

    // `transfers` may be null: then nothing can be started.
    FaultTransfers(Pager& pager, std::unique_ptr<store::SharedTransfers> transfers, bool may_spin)
        : pager_(pager), transfers_(std::move(transfers)), spinning_(may_spin) {}

    static constexpr size_t kBatch = store::SharedTransfers::kStartMax;

    // Whether kBatch transfers more may be in flight.
    bool can_start() const noexcept {
        return transfers_ != nullptr && !transfers_->is_refused() &&
               in_flight_.load(std::memory_order_relaxed) + static_cast<int32_t>(kBatch) <=
                   static_cast<int32_t>(store::SharedTransfers::kInFlightMax);
    }
    // And `bytes` more of reads.
    bool has_room_for_reads(uint64_t bytes) const noexcept {
        return can_start() && read_bytes() + bytes <= kReadBytesMax;
    }
    // Of reads that are in flight, or about to be.
    uint64_t read_bytes() const noexcept { return read_bytes_.load(std::memory_order_relaxed); }

    bool in_flight() const noexcept { return in_flight_.load(std::memory_order_seq_cst) > 0; }

    // Starts transfers, at most kBatch: Frame::io of blocks in kReading, or the writes of a set,
    // whose block is in kStoring.  Each ends with Pager::finish_transfer, or abandon_transfer if
    // the system refuses it.
    void start(store::IoRequest* const* requests, size_t count) noexcept;

    // Those that are started together.
    class Batch {
    public:
        explicit Batch(FaultTransfers& transfers) noexcept : transfers_(transfers) {}
        ~Batch() { start(); }
        Batch(const Batch&) = delete;
        Batch& operator=(const Batch&) = delete;

        void add(store::IoRequest& request) noexcept {
            if (count_ == kBatch) start();
            requests_[count_++] = &request;
        }

    private:
        void start() noexcept {
            transfers_.start(requests_.data(), count_);
            count_ = 0;
        }

        FaultTransfers& transfers_;
        std::array<store::IoRequest*, kBatch> requests_;
        size_t count_ = 0;
    };

    // In the child of a fork: the system's means are the parent's.
    void abandon_in_child() noexcept { static_cast<void>(transfers_.release()); }

    // Completes what has arrived, if nobody else is about to.
    void poll() noexcept;

    // Returns when still_waiting() is false, which the end of a transfer that is in flight, or
    // about to be, brings about.
    template <typename StillWaiting>
    void wait_while(StillWaiting still_waiting) noexcept;

private:
    bool try_lead() noexcept { return !leading_.exchange(true, std::memory_order_seq_cst); }
    void stop_leading() noexcept;
    bool complete_next(bool wait) noexcept;
    void complete_arrived() noexcept;
    static void yield_to_starter(uint32_t turn) noexcept;

    Pager& pager_;
    std::unique_ptr<store::SharedTransfers> transfers_;
    Spinning spinning_;
    std::atomic<uint64_t> read_bytes_{0};  // from before they start until they are completed
    std::atomic<int32_t> in_flight_{0};    // the system has; less than 0 for moments
    std::atomic<bool> leading_{false};     // somebody completes
    std::atomic<uint32_t> changes_{0};     // one was completed, or nobody leads any more
    std::atomic<uint32_t> followers_{0};   // threads that wait
};

template <typename StillWaiting>
void FaultTransfers::wait_while(StillWaiting still_waiting) noexcept {
    const auto is_done = [&] {
        poll();
        return !still_waiting();
    };
    if (spinning_.until(is_done)) return;
    uint32_t turn = 0;
    while (still_waiting()) {
        if (try_lead()) {
            const bool any = complete_next(true);
            complete_arrived();
            stop_leading();
            // None is in flight: who starts the transfer is about to, or the kernel has refused it.
            if (!any) yield_to_starter(turn++);
            continue;
        }
        followers_.fetch_add(1, std::memory_order_seq_cst);
        const uint32_t seen = changes_.load(std::memory_order_seq_cst);
        if (leading_.load(std::memory_order_seq_cst) && still_waiting()) {
            sys::futex_wait(changes_, seen);
        }
        followers_.fetch_sub(1, std::memory_order_seq_cst);
    }
}

}  // namespace hanare::pager
