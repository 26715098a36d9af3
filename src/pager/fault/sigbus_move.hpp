// SPDX-License-Identifier: Apache-2.0
//
// Engine sigbus-move: blocks are mapped and unmapped with UFFDIO_MOVE, which moves pages between
// the slot and the region: no copy, no page allocation, atomic per page against running threads.
// Pages can only be moved into a registered range, so the arena is registered as well; touching an
// empty slot is therefore a SIGBUS, too, which only a defect of the pager can cause.
//
// UFFDIO_MOVE always maps writable.  A read-only install therefore protects after the move, and
// finds writes that came in between by comparing with a copy made before: whatever was written
// before the protection shows as a difference, whatever comes later faults.  A write of the value
// that was there already is no difference and needs no write-back.
#pragma once

#include <atomic>
#include <utility>

#include "base/units.hpp"
#include "pager/fault/engine.hpp"
#include "sys/lock.hpp"
#include "sys/memory.hpp"
#include "sys/uffd.hpp"

namespace hanare::pager {

// Copies made while a block is installed; one bit per buffer.
class ScratchPool {
public:
    static constexpr size_t kBufferBytes = 256 * kKiB;
    static constexpr uint32_t kBuffers = 8;
    static constexpr size_t kBytes = kBuffers * kBufferBytes;

    explicit ScratchPool(sys::Mapping memory) : memory_(std::move(memory)) {}

    std::byte* acquire() noexcept;
    void release(const std::byte* buffer) noexcept;

private:
    static constexpr uint32_t kAll = (1u << kBuffers) - 1;
    static constexpr uint32_t kAwaited = 1u << 31;  // somebody sleeps until one is released

    sys::Mapping memory_;
    std::atomic<uint32_t> used_{0};
};

class SigbusMove final : public Engine {
public:
    // `scratch`: ScratchPool::kBytes; `zeros`: kBlockBytesMax, never written; `nursery`: one huge
    // page, aligned.
    SigbusMove(sys::Userfault userfault, sys::Mapping scratch, sys::Mapping zeros,
               sys::Mapping nursery)
        : userfault_(std::move(userfault)),
          scratch_(std::move(scratch)),
          zeros_(std::move(zeros)),
          nursery_(std::move(nursery)) {}

    const char* name() const noexcept override { return "sigbus-move"; }
    int attach(std::byte* range, size_t bytes) noexcept override;
    int attach_arena(std::byte* arena, size_t bytes) noexcept override;
    int populate(std::byte* slot, size_t bytes) noexcept override;
    int install_writable(std::byte* block, std::byte* slot, size_t bytes) noexcept override;
    int install_read_only(std::byte* block, std::byte* slot, size_t bytes,
                          bool* written) noexcept override;
    int allow_writes(std::byte* block, size_t bytes) noexcept override;
    int withdraw(std::byte* block, std::byte* slot, size_t bytes) noexcept override;
    void abandon_in_child() noexcept override { userfault_.close(); }

private:
    int move_in(std::byte* block, std::byte* slot, size_t bytes) noexcept;
    int move_when_free(std::byte* target, std::byte* source, size_t bytes, size_t* moved) noexcept;
    void take_back(std::byte* target, std::byte* source, size_t bytes) noexcept;
    int populate_contiguous(std::byte* slot, size_t bytes) noexcept;
    int install_part(std::byte* block, std::byte* slot, std::byte* copy, size_t bytes,
                     bool* written) noexcept;

    sys::Userfault userfault_;
    ScratchPool scratch_;
    sys::Mapping zeros_;
    sys::Mapping nursery_;  // where huge pages are born
    sys::RankedLock populating_{sys::LockRank::kLeaf};
};

}  // namespace hanare::pager
