// SPDX-License-Identifier: Apache-2.0
//
// Notices: which blocks each task has changed, in the order in which it has released them (write
// notices of lazy release consistency: Keleher, Cox, Zwaenepoel 1992).  Every task has a log of
// every task, a ring in which positions only grow; what it knows of one is what lies before its
// position there.  So a vector of positions is a vector timestamp, and what another task lacks is a
// range of bytes, which it reads by itself out of the memory of who knows it.
//
// Positions are read by any thread; one at a time appends and extends.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "sys/sparse_memory.hpp"

namespace hanare::dsm {

// Blocks [first, first + count).
struct Run {
    uint32_t first = 0;
    uint32_t count = 0;

    friend bool operator==(const Run&, const Run&) = default;
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
    std::vector<uint64_t> positions() const;

    // To this task's own log; where they are too many, one that is all blocks.
    void append(std::span<const Run> runs) noexcept;

    // The ring's bytes from a position on, in two pieces where it ends between.
    struct Pieces {
        std::span<std::byte> first;
        std::span<std::byte> second;
    };
    Pieces pieces(uint32_t task, uint64_t from, uint64_t bytes) const noexcept;
    // What pieces() gave was filled with what the task has said, up to this position.
    void extend(uint32_t task, uint64_t position) noexcept {
        positions_[task].store(position, std::memory_order_release);
    }

    // All rings, for others to read: that of a task begins at task * kRingBytes.
    std::span<std::byte> memory() const noexcept { return {rings_.address(), rings_.bytes()}; }

private:
    Notices(uint32_t rank, uint32_t size, sys::SparseMemory rings)
        : rank_(rank),
          size_(size),
          rings_(std::move(rings)),
          positions_(std::make_unique<std::atomic<uint64_t>[]>(size)) {}

    uint32_t rank_;
    uint32_t size_;
    sys::SparseMemory rings_;
    std::unique_ptr<std::atomic<uint64_t>[]> positions_;
};

// Adds what the pieces say, which may be anything.
void read_runs(const Notices::Pieces& pieces, std::vector<Run>& runs);
// Sorted, without gaps or overlaps between neighbours that could be one.
void make_disjoint(std::vector<Run>& runs);

}  // namespace hanare::dsm
