// SPDX-License-Identifier: Apache-2.0
//
// Notices: which blocks each task has changed, in the order in which it has released them (write
// notices of lazy release consistency: Keleher, Cox, Zwaenepoel 1992).  Every task has a log of
// every task, a ring in which positions only grow; what it knows of one is what lies before its
// position there.  So a vector of positions is a vector timestamp, and what another task lacks is a
// range of bytes, which it reads by itself out of the memory of who knows it.  What it reads may be
// overwritten meanwhile by what is newer: so whoever writes to a ring says before how far, and who
// has read looks at that afterwards (was_overwritten()).  What is lost counts as all blocks.
//
// Positions are read by any thread; one at a time appends, prepares and extends.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "dsm/run_list.hpp"
#include "sys/sparse_memory.hpp"

namespace hanare::dsm {

// What a message says of each task: how far the sender knows its log, and from where on the message
// has that.
struct Said {
    uint64_t position = 0;
    uint64_t begin = 0;
};

class Notices {
public:
    static constexpr uint64_t kRingBytes = 1u << 20;
    // Who lacks more than that regards all as changed; the rest of the ring is for what is appended
    // while somebody reads.
    static constexpr uint64_t kRangeBytesMax = kRingBytes / 2;

    static Result<Notices> make(uint32_t rank, uint32_t size);

    uint64_t position(uint32_t task) const noexcept {
        return positions_[task].load(std::memory_order_acquire);
    }
    void copy_positions(std::span<uint64_t> room) const noexcept;

    // To this task's own log; where they are too many, one that is all blocks.
    void append(std::span<const Run> runs) noexcept;

    // The ring's bytes from a position on, in two pieces where it ends between.
    struct Pieces {
        std::span<std::byte> first;
        std::span<std::byte> second;
    };
    Pieces pieces(uint32_t task, uint64_t from, uint64_t bytes) const noexcept;
    // What pieces() gives up to this position is about to be filled.
    void prepare(uint32_t task, uint64_t position) noexcept;
    // What pieces() gave was filled with what the task has said, up to this position.
    void extend(uint32_t task, uint64_t position) noexcept {
        positions_[task].store(position, std::memory_order_release);
    }

    // Whether a peer may have these positions: whole runs; and nobody knows more of this task than
    // it has said.
    bool may_be_known(std::span<const uint64_t> known) const noexcept;
    // Copies what a message brings behind what is known.  False: it does not have all that is new.
    bool take_in(std::span<const Said> said, std::span<const std::byte> logs) noexcept;

    // Instead of what could not be read: all blocks, wherever somebody begins to read there.
    void fill_with_all(uint32_t task, uint64_t from, uint64_t bytes) noexcept;

    // All rings, for others to read: that of a task begins at task * kRingBytes; behind them, for
    // each task, how far its ring was prepared.
    std::span<std::byte> memory() const noexcept { return {rings_.address(), rings_.bytes()}; }
    uint64_t prepared_offset() const noexcept { return size_ * kRingBytes; }
    // Of a reader that has got what lay from `begin` on, and behind that how far it was prepared.
    static bool was_overwritten(uint64_t begin, uint64_t prepared) noexcept {
        return prepared > begin + kRingBytes;
    }

private:
    Notices(uint32_t rank, uint32_t size, sys::SparseMemory rings)
        : rank_(rank),
          size_(size),
          rings_(std::move(rings)),
          positions_(std::make_unique<std::atomic<uint64_t>[]>(size)) {}

    std::atomic<uint64_t>& prepared(uint32_t task) const noexcept {
        return reinterpret_cast<std::atomic<uint64_t>*>(rings_.address() + prepared_offset())[task];
    }

    uint32_t rank_;
    uint32_t size_;
    sys::SparseMemory rings_;
    std::unique_ptr<std::atomic<uint64_t>[]> positions_;
};

// Adds what the pieces say, which may be anything.
void read_runs(const Notices::Pieces& pieces, RunList& runs) noexcept;

}  // namespace hanare::dsm
