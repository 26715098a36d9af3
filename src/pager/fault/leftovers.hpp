// SPDX-License-Identifier: Apache-2.0
//
// Leftovers: pages whose content is elsewhere by now.  Whenever the kernel takes pages out of an
// address space it interrupts all processors that threads of the process run on and waits for
// them, which takes longer than everything else that is done for one part (decision 44).  Hence
// they are dropped many at once.
//
// Thread-safe.  Nobody may give such pages new content before `drop` of what `add` returned.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/thread_annotations.hpp"
#include "sys/lock.hpp"
#include "sys/memory.hpp"

namespace hanare::pager {

class Leftovers {
public:
    // They go with the others of their generation, which is returned; not 0.
    uint64_t add(std::byte* pages, size_t bytes) noexcept;
    // When it returns, none of the generation is left.
    void drop(uint64_t generation) noexcept {
        if (generation_.load(std::memory_order_acquire) == generation) drop_all();
    }
    void drop_all() noexcept;

private:
    static constexpr uint32_t kMost = 32;
    static constexpr size_t kBytesMost = 256 * 1024;

    void drop_locked() noexcept HANARE_REQUIRES(lock_);

    // Held while the kernel drops them.
    sys::RankedLock lock_{sys::LockRank::kLeaf};
    std::atomic<uint64_t> generation_{1};  // of those that are here
    uint32_t count_ HANARE_GUARDED_BY(lock_) = 0;
    size_t bytes_ HANARE_GUARDED_BY(lock_) = 0;
    std::array<sys::MemoryRange, kMost> ranges_ HANARE_GUARDED_BY(lock_){};
};

}  // namespace hanare::pager
