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
#include "pager/fault/buffer_pool.hpp"
#include "pager/fault/userfault_engine.hpp"
#include "sys/lock.hpp"
#include "sys/memory.hpp"
#include "sys/thread_count.hpp"

namespace hanare::pager {

// What all engines that move pages do.
class MovingEngine : public UserfaultEngine {
public:
    static constexpr size_t kScratchBytes = 256 * kKiB;
    static constexpr uint32_t kScratchBuffers = 8;

    // `scratch`: kScratchBuffers of kScratchBytes; `zeros`: kBlockBytesMax, never written;
    // `nursery` and `keepers_nursery`: one huge page each, aligned.
    MovingEngine(sys::Userfault userfault, sys::Userfault::Features features, sys::Mapping scratch,
                 sys::Mapping zeros, sys::Mapping nursery, sys::Mapping keepers_nursery)
        : UserfaultEngine(std::move(userfault), features),
          scratch_(std::move(scratch), kScratchBytes),
          zeros_(std::move(zeros)),
          nursery_(std::move(nursery)),
          keepers_nursery_(std::move(keepers_nursery)) {}

    bool moves_parts() const noexcept override { return true; }
    int attach_arena(std::byte* arena, size_t bytes) noexcept override;
    int populate(std::byte* slot, size_t bytes) noexcept override;
    int populate_ahead(std::byte* slot, size_t bytes) noexcept override;
    void trim() noexcept override;
    int install_writable(std::byte* block, std::byte* slot, size_t bytes,
                         FilePlace place) noexcept override;
    int install_read_only(std::byte* block, std::byte* slot, size_t bytes,
                          bool* written) noexcept override;
    int withdraw(std::byte* block, std::byte* slot, size_t bytes,
                 FilePlace place) noexcept override;
    bool moves_runs() const noexcept override { return true; }
    int install_run(std::byte* blocks, std::byte* slots, size_t bytes) noexcept override;
    int withdraw_run(std::byte* blocks, std::byte* slots, size_t bytes) noexcept override;
    int withdraw_clean_run(std::byte* blocks, std::byte* slots, size_t bytes,
                           size_t* lost_bytes) noexcept override;
    int install_clean_run(std::byte* blocks, std::byte* slots, size_t bytes) noexcept override;
    void abandon_in_child() noexcept override {
        UserfaultEngine::abandon_in_child();
        threads_.abandon_in_child();
    }
    int become_child() noexcept override;
    void note_shared_pages() noexcept override { shares_pages_.store(true); }

protected:
    ~MovingEngine() = default;

private:
    // Where huge pages are born, one at a time.
    struct Nursery {
        explicit Nursery(sys::Mapping mapping) : memory(std::move(mapping)) {}

        sys::RankedLock lock{sys::LockRank::kLeaf};
        const sys::Mapping memory;
        size_t used HANARE_GUARDED_BY(lock) = kHugePageBytes;
        size_t used_before HANARE_GUARDED_BY(lock) = kHugePageBytes;  // when it was trimmed last
    };

    bool must_copy(int error) const noexcept;
    int copy_out(std::byte* block, std::byte* slot, size_t bytes) noexcept;
    int copy_in(std::byte* block, std::byte* slot, size_t bytes) noexcept;
    int move_in(std::byte* block, std::byte* slot, size_t bytes) noexcept;
    // EBUSY after so many more tries.
    int move_when_free(std::byte* target, std::byte* source, size_t bytes, uint32_t tries,
                       size_t* moved) noexcept;
    void take_back(std::byte* target, std::byte* source, size_t bytes) noexcept;
    void unprotect(std::byte* pages, size_t bytes) noexcept;
    int populate_contiguous(Nursery& nursery, std::byte* slot, size_t bytes) noexcept;
    bool populate_from_nursery(std::byte* slot, size_t bytes) noexcept;
    int renew(Nursery& nursery) noexcept HANARE_REQUIRES(nursery.lock);
    int leave(Nursery& nursery, std::byte* slot, size_t bytes, uint32_t tries) noexcept
        HANARE_REQUIRES(nursery.lock);
    void clear(Nursery& nursery) noexcept HANARE_REQUIRES(nursery.lock);
    int install_protected(std::byte* block, std::byte* slot, size_t bytes) noexcept;
    int install_piece(std::byte* block, std::byte* slot, std::byte* copy, size_t bytes,
                      bool* written) noexcept;

    bool is_single() noexcept;

    sys::ThreadCount threads_;
    std::atomic<uint32_t> not_single_for_{0};  // installs
    std::atomic<bool> shares_pages_{false};    // there was a fork: some cannot be moved
    BufferPool scratch_;                       // copies made while a block is installed
    sys::Mapping zeros_;
    Nursery nursery_;          // of faulting threads
    Nursery keepers_nursery_;  // empty but while the keeper populates
};

class SigbusMove final : public MovingEngine {
public:
    using MovingEngine::MovingEngine;
    const char* name() const noexcept override { return "sigbus-move"; }
};

}  // namespace hanare::pager
