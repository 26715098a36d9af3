// SPDX-License-Identifier: Apache-2.0
//
// BlockList: numbers of blocks that fault handlers and the serving thread add to, and somebody
// takes out all at once.  A block is in it once at a time, by a bit of its state, and once more
// each time that it has moved away and come back, or was looked at while it was steady.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/assert.hpp"
#include "base/result.hpp"
#include "base/thread_annotations.hpp"
#include "sys/lock.hpp"
#include "sys/signal.hpp"
#include "sys/sparse_memory.hpp"

namespace hanare::dsm {

// How many blocks of the sorted list follow each other from its beginning on.
inline uint32_t run_of(std::span<const uint32_t> blocks) noexcept {
    uint32_t count = 1;
    while (count < blocks.size() && blocks[count] == blocks[0] + count) ++count;
    return count;
}

class BlockList {
public:
    static Result<BlockList> make(uint32_t blocks) {
        const size_t bytes = size_t{blocks} * kTimesMax * sizeof(uint32_t);
        HANARE_TRY_ASSIGN(auto first, sys::SparseMemory::reserve(bytes));
        HANARE_TRY_ASSIGN(auto second, sys::SparseMemory::reserve(bytes));
        return BlockList(std::move(first), std::move(second), size_t{blocks} * kTimesMax);
    }
    BlockList(BlockList&& other) noexcept
        : memories_{std::move(other.memories_[0]), std::move(other.memories_[1])},
          capacity_(other.capacity_) {}

    // With signals blocked; async-signal-safe.
    void add(uint32_t block) noexcept {
        const sys::LockGuard guard(lock_);
        HANARE_ASSERT(count_ < capacity_);
        items(current_)[count_++] = block;
    }

    size_t count() noexcept {
        const sys::SignalBlock no_signals;
        const sys::LockGuard guard(lock_);
        return count_;
    }

    // All that was added since the last call, sorted; of use until the next call.  One thread at a
    // time.
    std::span<uint32_t> take() noexcept {
        std::span<uint32_t> taken;
        {
            const sys::SignalBlock no_signals;
            const sys::LockGuard guard(lock_);
            taken = {items(current_), count_};
            current_ ^= 1;
            count_ = 0;
        }
        std::ranges::sort(taken);
        return taken;
    }

private:
    static constexpr uint32_t kTimesMax = 4;

    BlockList(sys::SparseMemory first, sys::SparseMemory second, size_t capacity) noexcept
        : memories_{std::move(first), std::move(second)}, capacity_(capacity) {}
    uint32_t* items(uint32_t which) const noexcept {
        return reinterpret_cast<uint32_t*>(memories_[which].address());
    }

    sys::SparseMemory memories_[2];
    const size_t capacity_;
    sys::RankedLock lock_{sys::LockRank::kShared};
    uint32_t current_ HANARE_GUARDED_BY(lock_) = 0;
    size_t count_ HANARE_GUARDED_BY(lock_) = 0;
};

}  // namespace hanare::dsm
