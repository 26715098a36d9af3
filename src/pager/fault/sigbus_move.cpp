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
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#include "base/assert.hpp"
#include "base/units.hpp"
#include "pager/fault/engine.hpp"
#include "pager/fault/frame.hpp"
#include "sys/lock.hpp"
#include "sys/memory.hpp"
#include "sys/uffd.hpp"

namespace hanare::pager {

namespace {

constexpr size_t kScratchBytes = 256 * kKiB;
constexpr uint32_t kScratches = 8;

// About two seconds in all.
constexpr uint32_t kBusyYields = 200;
constexpr uint32_t kBusyTriesMax = 20'000;
constexpr uint32_t kBusyPauseUs = 100;

// Copies made while a block is installed; one bit per buffer.
class ScratchPool {
public:
    static Result<ScratchPool> create() {
        ScratchPool pool;
        HANARE_TRY_ASSIGN(pool.memory_,
                          sys::Mapping::reserve(kScratches * kScratchBytes, kOsPageBytes));
        return pool;
    }

    ScratchPool() = default;
    ScratchPool(ScratchPool&& other) noexcept : memory_(std::move(other.memory_)) {}
    ScratchPool& operator=(ScratchPool&& other) noexcept {
        memory_ = std::move(other.memory_);
        return *this;
    }

    std::byte* acquire() noexcept {
        for (;;) {
            uint32_t used = used_.load(std::memory_order_relaxed);
            while (used != kAll) {
                const uint32_t bit = ~used & (used + 1);
                if (used_.compare_exchange_weak(used, used | bit, std::memory_order_acquire)) {
                    return memory_.address() +
                           kScratchBytes * static_cast<size_t>(__builtin_ctz(bit));
                }
            }
            sys::yield_for_us(0);  // a holder only copies and makes two ioctls
        }
    }

    void release(const std::byte* buffer) noexcept {
        const auto index = static_cast<size_t>(buffer - memory_.address()) / kScratchBytes;
        used_.fetch_and(~(1u << index), std::memory_order_release);
    }

private:
    static constexpr uint32_t kAll = (1u << kScratches) - 1;

    sys::Mapping memory_;
    std::atomic<uint32_t> used_{0};
};

class SigbusMove final : public Engine {
public:
    SigbusMove(sys::Userfault userfault, ScratchPool scratch, sys::Mapping zeros,
               sys::Mapping nursery)
        : userfault_(std::move(userfault)),
          scratch_(std::move(scratch)),
          zeros_(std::move(zeros)),
          nursery_(std::move(nursery)) {}

    const char* name() const noexcept override { return "sigbus-move"; }

    int attach(std::byte* range, size_t bytes) noexcept override {
        return userfault_.register_range(range, bytes);
    }

    int attach_arena(std::byte* arena, size_t bytes) noexcept override {
        return userfault_.register_range(arena, bytes);
    }

    int populate(std::byte* slot, size_t bytes) noexcept override {
        if (reinterpret_cast<uintptr_t>(slot) % kHugePageBytes == 0 &&
            bytes % kHugePageBytes == 0) {
            return populate_contiguous(slot, bytes);
        }
        size_t copied = 0;
        const int error = userfault_.copy(slot, zeros_.address(), bytes, false, &copied);
        if (error != 0) sys::advise(slot, bytes, MADV_DONTNEED);
        return error;
    }

    int install_writable(std::byte* block, std::byte* slot, size_t bytes) noexcept override {
        return move_in(block, slot, bytes);
    }

    int install_read_only(std::byte* block, std::byte* slot, size_t bytes,
                          bool* written) noexcept override {
        *written = false;
        std::byte* copy = scratch_.acquire();
        int error = 0;
        for (size_t done = 0; done < bytes && error == 0; done += kScratchBytes) {
            const size_t part = std::min(kScratchBytes, bytes - done);
            error = install_part(block + done, slot + done, copy, part, written);
            if (error != 0 && done > 0) take_back(block, slot, done);
        }
        scratch_.release(copy);
        if (error == 0 && *written) {
            const int unprotect_error = userfault_.write_protect(block, bytes, false);
            HANARE_ASSERT(unprotect_error == 0);  // the pages are present
        }
        return error;
    }

    int allow_writes(std::byte* block, size_t bytes) noexcept override {
        return userfault_.write_protect(block, bytes, false);
    }

    int withdraw(std::byte* block, std::byte* slot, size_t bytes) noexcept override {
        size_t moved = 0;
        const int error = userfault_.move(slot, block, bytes, &moved);
        if (error != 0) take_back(slot, block, moved);
        return error;
    }

    void abandon_in_child() noexcept override { userfault_.close(); }

private:
    // The kernel reports a direct read as complete a moment before it lets go of the pages, and
    // pages that are held cannot be moved.  There is nothing to wait on but time.
    int move_in(std::byte* block, std::byte* slot, size_t bytes) noexcept {
        size_t moved = 0;
        const int error = move_when_free(block, slot, bytes, &moved);
        if (error != 0) take_back(block, slot, moved);
        return error;
    }

    int move_when_free(std::byte* target, std::byte* source, size_t bytes, size_t* moved) noexcept {
        int error = userfault_.move(target, source, bytes, moved);
        for (uint32_t tries = 0; error == EBUSY && tries < kBusyTriesMax; ++tries) {
            sys::yield_for_us(tries < kBusyYields ? 0 : kBusyPauseUs);
            size_t more = 0;
            error = userfault_.move(target + *moved, source + *moved, bytes - *moved, &more);
            *moved += more;
        }
        return error;
    }

    // A block that is partly here and partly there has no state, so this cannot be given up.
    void take_back(std::byte* target, std::byte* source, size_t bytes) noexcept {
        size_t moved = 0;
        const int error = move_when_free(source, target, bytes, &moved);
        HANARE_ASSERT(error == 0);
    }

    // Pages that are neighbours in memory, as far as the kernel gives huge pages: direct transfers
    // of a block then have one segment instead of one per page.  Every page returns to its own slot
    // for ever, so they stay neighbours.  A huge page is split here once, and not while it is all
    // zeros, because the kernel would then replace its parts by the shared zero page.
    int populate_contiguous(std::byte* slot, size_t bytes) noexcept {
        while (populating_.test_and_set(std::memory_order_acquire)) sys::yield_for_us(0);
        int error = 0;
        size_t done = 0;
        for (; done < bytes && error == 0; done += kHugePageBytes) {
            std::byte* fresh = nursery_.address();
            error = nursery_.renew();
            if (error != 0) break;
            nursery_.advise(MADV_DONTFORK);
            nursery_.advise(MADV_HUGEPAGE);
            mark_pages(fresh, std::byte{1});
            size_t moved = 0;
            error = move_when_free(slot + done, fresh, kOsPageBytes, &moved);
            if (error == 0) {
                error = move_when_free(slot + done + kOsPageBytes, fresh + kOsPageBytes,
                                       kHugePageBytes - kOsPageBytes, &moved);
            }
            if (error == 0) mark_pages(slot + done, std::byte{0});
        }
        if (error != 0) {
            sys::advise(nursery_.address(), kHugePageBytes, MADV_DONTNEED);
            sys::advise(slot, bytes, MADV_DONTNEED);
        }
        populating_.clear(std::memory_order_release);
        return error;
    }

    static void mark_pages(std::byte* memory, std::byte mark) noexcept {
        for (size_t page = 0; page < kHugePageBytes; page += kOsPageBytes) {
            static_cast<volatile std::byte&>(memory[page]) = mark;
        }
    }

    int install_part(std::byte* block, std::byte* slot, std::byte* copy, size_t bytes,
                     bool* written) noexcept {
        std::memcpy(copy, slot, bytes);
        if (const int error = move_in(block, slot, bytes); error != 0) return error;
        if (const int error = userfault_.write_protect(block, bytes, true); error != 0) {
            take_back(block, slot, bytes);
            return error;
        }
        if (std::memcmp(copy, block, bytes) != 0) *written = true;
        return 0;
    }

    sys::Userfault userfault_;
    ScratchPool scratch_;
    sys::Mapping zeros_;    // never written, so it occupies no memory
    sys::Mapping nursery_;  // where huge pages are born
    std::atomic_flag populating_;
};

}  // namespace

Result<std::unique_ptr<Engine>> open_sigbus_move() {
    HANARE_TRY_ASSIGN(auto userfault, sys::Userfault::open(true));
    HANARE_TRY_ASSIGN(auto scratch, ScratchPool::create());
    HANARE_TRY_ASSIGN(auto zeros, sys::Mapping::reserve(kBlockBytesMax, kOsPageBytes));
    HANARE_TRY_ASSIGN(auto nursery, sys::Mapping::reserve(kHugePageBytes, kHugePageBytes));
    return std::make_unique<SigbusMove>(std::move(userfault), std::move(scratch), std::move(zeros),
                                        std::move(nursery));
}

}  // namespace hanare::pager
