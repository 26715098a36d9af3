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
    SigbusMove(sys::Userfault userfault, ScratchPool scratch, sys::Mapping zeros)
        : userfault_(std::move(userfault)),
          scratch_(std::move(scratch)),
          zeros_(std::move(zeros)) {}

    const char* name() const noexcept override { return "sigbus-move"; }

    int attach(std::byte* range, size_t bytes) noexcept override {
        return userfault_.register_range(range, bytes);
    }

    int attach_arena(std::byte* arena, size_t bytes) noexcept override {
        return userfault_.register_range(arena, bytes);
    }

    int populate(std::byte* slot, size_t bytes) noexcept override {
        return userfault_.copy(slot, zeros_.address(), bytes, false);
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
        if (error == 0 && *written) error = userfault_.write_protect(block, bytes, false);
        return error;
    }

    int allow_writes(std::byte* block, size_t bytes) noexcept override {
        return userfault_.write_protect(block, bytes, false);
    }

    int withdraw(std::byte* block, std::byte* slot, size_t bytes) noexcept override {
        return move_all(slot, block, bytes);
    }

    void abandon_in_child() noexcept override { userfault_.close(); }

private:
    // The kernel reports a direct read as complete a moment before it lets go of the pages, and
    // pages that are held cannot be moved.  There is nothing to wait on but time.
    int move_in(std::byte* block, std::byte* slot, size_t bytes) noexcept {
        int error = move_all(block, slot, bytes);
        for (uint32_t tries = 0; error == EBUSY && tries < kBusyTriesMax; ++tries) {
            sys::yield_for_us(tries < kBusyYields ? 0 : kBusyPauseUs);
            error = move_all(block, slot, bytes);
        }
        return error;
    }

    // All or nothing: what was moved when an error came up is moved back.
    int move_all(std::byte* target, std::byte* source, size_t bytes) noexcept {
        size_t moved = 0;
        const int error = userfault_.move(target, source, bytes, &moved);
        if (error != 0 && moved > 0) take_back(target, source, moved);
        return error;
    }

    void take_back(std::byte* target, std::byte* source, size_t bytes) noexcept {
        size_t moved = 0;
        const int error = userfault_.move(source, target, bytes, &moved);
        HANARE_ASSERT(error == 0);
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
    sys::Mapping zeros_;  // never written, so it occupies no memory
};

}  // namespace

Result<std::unique_ptr<Engine>> open_sigbus_move() {
    HANARE_TRY_ASSIGN(auto userfault, sys::Userfault::open(true));
    HANARE_TRY_ASSIGN(auto scratch, ScratchPool::create());
    HANARE_TRY_ASSIGN(auto zeros, sys::Mapping::reserve(kBlockBytesMax, kOsPageBytes));
    return std::make_unique<SigbusMove>(std::move(userfault), std::move(scratch), std::move(zeros));
}

}  // namespace hanare::pager
