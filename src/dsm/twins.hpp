// SPDX-License-Identifier: Apache-2.0
//
// Twins: what copies of blocks held before this task began to write to them, until the difference
// has been sent home.  Their memory is used again, what was used last first; of what is free only
// so much stays as many releases want at once, the rest is given back (trim()).
//
// take() and give_back() are async-signal-safe, with signals blocked; who calls them has the block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.hpp"
#include "base/thread_annotations.hpp"
#include "dsm/segment.hpp"
#include "sys/lock.hpp"
#include "sys/sparse_memory.hpp"

namespace hanare::dsm {

class Twins {
public:
    // How many free ones keep their memory: 32 MiB.
    static constexpr uint32_t kKeptMax = 8192;

    static Result<Twins> make(uint32_t blocks);
    Twins(Twins&& other) noexcept
        : memory_(std::move(other.memory_)),
          places_(std::move(other.places_)),
          kept_(std::move(other.kept_)),
          empty_(std::move(other.empty_)) {}

    // The block's, of unknown content if it had none.
    std::byte* take(uint32_t block) noexcept;
    // The one that take() gave.
    std::byte* of(uint32_t block) const noexcept { return address(place(block) - 1); }
    void give_back(uint32_t block) noexcept;
    // Gives memory back.  For ordinary threads, with signals blocked.
    void trim() noexcept;

    // Of which the memory is there, in use or not.
    uint32_t resident() noexcept;

private:
    static constexpr uint32_t kTrimmedAtOnce = 1024;

    Twins(sys::SparseMemory memory, sys::SparseMemory places, sys::SparseMemory kept,
          sys::SparseMemory empty) noexcept
        : memory_(std::move(memory)),
          places_(std::move(places)),
          kept_(std::move(kept)),
          empty_(std::move(empty)) {}

    std::byte* address(uint32_t number) const noexcept {
        return memory_.address() + size_t{number} * kBlockBytes;
    }
    static uint32_t* numbers(const sys::SparseMemory& memory) noexcept {
        return reinterpret_cast<uint32_t*>(memory.address());
    }
    // The twin's number plus one; 0: the block has none.
    uint32_t& place(uint32_t block) const noexcept { return numbers(places_)[block]; }

    sys::SparseMemory memory_;
    sys::SparseMemory places_;
    sys::RankedLock lock_{sys::LockRank::kShared};
    sys::SparseMemory kept_;   // stacks of numbers that are free
    sys::SparseMemory empty_;  // the same, without memory
    uint32_t kept_count_ HANARE_GUARDED_BY(lock_) = 0;
    uint32_t empty_count_ HANARE_GUARDED_BY(lock_) = 0;
    uint32_t made_ HANARE_GUARDED_BY(lock_) = 0;
    uint32_t trimmed_ HANARE_GUARDED_BY(lock_) = 0;  // on their way from kept_ to empty_
};

}  // namespace hanare::dsm
