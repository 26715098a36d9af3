// SPDX-License-Identifier: Apache-2.0
//
// Far memory that a program has asked for by itself (the C API): its system calls work on what lies
// in these ranges, and everything else of the program is left alone.  No memory is adopted, and a
// forked child has none of it.
//
// One per process, as the Space of an unmodified program; never both.  Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "intercept/far_memory.hpp"
#include "sys/process_lock.hpp"

namespace hanare::intercept {

class RegionMemory final : public FarMemory {
public:
    // Catches the process's system calls, if that has not been done; NOT_SUPPORTED once it has more
    // than one thread, and where the system does not let any code be written.
    Result<void> begin();
    // A pool with that budget has ranges here.
    void note_pool(uint64_t local_bytes) noexcept;

    // A range of whole OS pages of one region; `owner` is any number of the caller's.
    Result<void> add(uintptr_t begin, size_t bytes, uintptr_t owner);
    // How many bytes the owner had added there; 0: none.
    size_t remove(uintptr_t begin, uintptr_t owner) noexcept;
    void remove_all(uintptr_t owner) noexcept;

    // Not of what reaches out of a range: nobody knows what is there, and the kernel finds out.
    bool may_access(uintptr_t address, size_t bytes) const override;
    pager::Region* lasting_region(size_t) const noexcept override { return nullptr; }

    // In the child of a fork.  Async-signal-safe.
    void forget_in_child() noexcept;

private:
    struct OwnedChunk : Chunk {
        uintptr_t owners[kRangesPerChunk] = {};
    };

    template <typename Visit>
    void for_each_range(Visit visit) noexcept;

    sys::ProcessLock lock_;  // for changes
    uintptr_t first_owners_[kRangesPerChunk] = {};
    bool is_prepared_ = false;
    bool has_begun_ = false;
};

// The process's.
RegionMemory& region_memory() noexcept;

}  // namespace hanare::intercept
