// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/sigbus_move.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#include "base/assert.hpp"
#include "base/sanitizers.hpp"
#include "base/units.hpp"
#include "pager/fault/frame.hpp"
#include "sys/lock.hpp"
#include "sys/memory.hpp"

namespace hanare::pager {

namespace {

// About two seconds in all.
constexpr uint32_t kBusyYields = 200;
constexpr uint32_t kBusyTriesMax = 20'000;
// Where a copy does as well.
constexpr uint32_t kSharedTriesMax = 2;
constexpr uint32_t kBusyPauseUs = 100;

void mark_pages(std::byte* memory, size_t bytes, std::byte mark) noexcept {
    for (size_t page = 0; page < bytes; page += kOsPageBytes) {
        static_cast<volatile std::byte&>(memory[page]) = mark;
    }
}

}  // namespace

int MovingEngine::attach_arena(std::byte* arena, size_t bytes) noexcept {
    return userfault_.register_range(arena, bytes);
}

int MovingEngine::populate(std::byte* slot, size_t bytes) noexcept {
    if (reinterpret_cast<uintptr_t>(slot) % kHugePageBytes == 0 && bytes % kHugePageBytes == 0) {
        return populate_contiguous(nursery_, slot, bytes);
    }
    if (bytes >= kContiguousBytesMin && populate_from_nursery(slot, bytes)) return 0;
    size_t copied = 0;
    const int error = userfault_.copy(slot, zeros_.address(), bytes, false, &copied);
    if (error != 0) sys::advise(slot, bytes, MADV_DONTNEED);
    return error;
}

int MovingEngine::populate_ahead(std::byte* slot, size_t bytes) noexcept {
    return populate_contiguous(keepers_nursery_, slot, bytes);
}

int MovingEngine::become_child() noexcept {
    threads_.abandon_in_child();
    note_shared_pages();
    for (Nursery* const nursery : {&nursery_, &keepers_nursery_}) {
        const sys::LockGuard guard(nursery->lock);
        nursery->used = nursery->used_before = kHugePageBytes;  // it is empty here
    }
    return UserfaultEngine::become_child();
}

void MovingEngine::trim() noexcept {
    if (!nursery_.lock.try_lock()) return;
    const bool is_idle = std::exchange(nursery_.used_before, nursery_.used) == nursery_.used;
    if (is_idle && nursery_.used < kHugePageBytes) clear(nursery_);
    nursery_.lock.unlock();
}

int MovingEngine::install_writable(std::byte* block, std::byte* slot, size_t bytes,
                                   FilePlace) noexcept {
    return move_in(block, slot, bytes);
}

int MovingEngine::install_read_only(std::byte* block, std::byte* slot, size_t bytes,
                                    bool* written) noexcept {
    *written = false;
    if (is_single()) return install_protected(block, slot, bytes);
    int error = 0;
    {
        const BufferPool::Buffer copy(scratch_);
        for (size_t done = 0; done < bytes && error == 0; done += kScratchBytes) {
            const size_t piece = std::min(kScratchBytes, bytes - done);
            error = install_piece(block + done, slot + done, copy.memory(), piece, written);
            if (error != 0 && done > 0) take_back(block, slot, done);
        }
    }
    if (error == 0 && *written) {
        const int unprotect_error = userfault_.write_protect(block, bytes, false);
        HANARE_ASSERT(unprotect_error == 0);  // the pages are present
    }
    return error;
}

// As ThreadCount::is_single(), but where there were several threads a moment ago, not asked.
bool MovingEngine::is_single() noexcept {
    constexpr uint32_t kAskPeriod = 64;
    const uint32_t passed = not_single_for_.load(std::memory_order_relaxed);
    if (passed == 0 && threads_.is_single()) return true;
    not_single_for_.store((passed + 1) % kAskPeriod, std::memory_order_relaxed);
    return false;
}

int MovingEngine::withdraw(std::byte* block, std::byte* slot, size_t bytes, FilePlace) noexcept {
    size_t moved = 0;
    int error = userfault_.move(slot, block, bytes, &moved);
    // Only pages that are swapped out keep their protection.  They are not swapped in before the
    // slot is used, so that none has been where none is now.
    if (moved > 0 && sys::are_pages_swapped_out()) unprotect(slot, moved);
    // What has moved stays there: back in the block it would be without its protection.
    if (must_copy(error)) error = copy_out(block + moved, slot + moved, bytes - moved);
    if (error != 0) take_back(slot, block, moved);
    return error == EAGAIN && moved > 0 ? EBUSY : error;
}

int MovingEngine::install_run(std::byte* blocks, std::byte* slots, size_t bytes) noexcept {
    size_t moved = 0;
    const int error = move_when_free(blocks, slots, bytes, kBusyYields, &moved);
    if (error != 0) take_back(blocks, slots, moved);
    return error;
}

// What is writable has no protection that it could keep or lose.
int MovingEngine::withdraw_run(std::byte* blocks, std::byte* slots, size_t bytes) noexcept {
    size_t moved = 0;
    const int error = userfault_.move(slots, blocks, bytes, &moved);
    if (error != 0) take_back(slots, blocks, moved);
    return error;
}

int MovingEngine::withdraw_clean_run(std::byte* blocks, std::byte* slots, size_t bytes,
                                     size_t* lost_bytes) noexcept {
    size_t moved = 0;
    const int error = userfault_.move(slots, blocks, bytes, &moved);
    if (error != 0) take_back(slots, blocks, moved);
    if (error == 0 && sys::are_pages_swapped_out()) unprotect(slots, bytes);
    *lost_bytes = error != 0 ? moved : 0;
    return error;
}

int MovingEngine::install_clean_run(std::byte* blocks, std::byte* slots, size_t bytes) noexcept {
    if (!is_single()) return ENOTSUP;
    if (const int error = install_run(blocks, slots, bytes); error != 0) return error;
    const int error = userfault_.write_protect(blocks, bytes, true);
    if (error != 0) take_back(blocks, slots, bytes);
    return error;
}

// The kernel moves nothing that another process has, too, since a fork (EBUSY), and nothing into or
// out of several mappings, of which a block may consist where the program has had a file (EINVAL).
bool MovingEngine::must_copy(int error) const noexcept {
    return error == EINVAL || (error == EBUSY && shares_pages_.load());
}

// These two do as `withdraw` and `move_in` with copies.
int MovingEngine::copy_out(std::byte* block, std::byte* slot, size_t bytes) noexcept {
    if (const int error = userfault_.write_protect(block, bytes, true); error != 0) return error;
    size_t copied = 0;
    int error = userfault_.copy(slot, block, bytes, false, &copied);
    if (error == 0) error = sys::advise(block, bytes, MADV_DONTNEED);
    if (error != 0 && copied > 0) sys::advise(slot, copied, MADV_DONTNEED);
    return error;
}

int MovingEngine::copy_in(std::byte* block, std::byte* slot, size_t bytes) noexcept {
    size_t copied = 0;
    const int error = copy(block, slot, bytes, false, &copied);
    if (error != 0) {
        // What is there already may have been written to.
        if (copied > 0 && userfault_.write_protect(block, copied, true) == 0) {
            std::memcpy(slot, block, copied);
            sys::advise(block, copied, MADV_DONTNEED);
        }
        return error;
    }
    sys::advise(slot, bytes, MADV_DONTNEED);
    return 0;
}

// Pages lose their protection when they are moved, except those that are swapped out.
void MovingEngine::unprotect(std::byte* pages, size_t bytes) noexcept {
    const int error = userfault_.write_protect(pages, bytes, false);
    HANARE_ASSERT(error == 0);  // the range is registered for it
}

// The kernel reports a direct read as complete a moment before it lets go of the pages, and
// pages that are held cannot be moved.  There is nothing to wait on but time.
int MovingEngine::move_in(std::byte* block, std::byte* slot, size_t bytes) noexcept {
    size_t moved = 0;
    const bool shares_pages = shares_pages_.load();
    const uint32_t tries = shares_pages ? kSharedTriesMax : kBusyTriesMax;
    const int error = move_when_free(block, slot, bytes, tries, &moved);
    if (error == 0) return 0;
    take_back(block, slot, moved);
    return must_copy(error) ? copy_in(block, slot, bytes) : error;
}

int MovingEngine::move_when_free(std::byte* target, std::byte* source, size_t bytes, uint32_t tries,
                                 size_t* moved) noexcept {
    int error = userfault_.move(target, source, bytes, moved);
    for (uint32_t tried = 0; error == EBUSY && tried < tries; ++tried) {
        sys::yield_for_us(tried < kBusyYields ? 0 : kBusyPauseUs);
        size_t more = 0;
        error = userfault_.move(target + *moved, source + *moved, bytes - *moved, &more);
        *moved += more;
    }
    return error;
}

// A block that is partly here and partly there has no state, so this cannot be given up.
void MovingEngine::take_back(std::byte* target, std::byte* source, size_t bytes) noexcept {
    if (bytes == 0) return;
    size_t moved = 0;
    const int error = move_when_free(source, target, bytes, kBusyTriesMax, &moved);
    HANARE_ASSERT(error == 0);
    unprotect(source, bytes);
}

// Pages that are neighbours in memory, as far as the kernel gives huge pages: direct transfers
// of a block then have one segment instead of one per page.  All pages of a block return to a slot
// together for ever, so they stay neighbours.  A huge page is split here once, and not while it is
// all zeros, because the kernel would then replace its parts by the shared zero page.
int MovingEngine::populate_contiguous(Nursery& nursery, std::byte* slot, size_t bytes) noexcept {
    const sys::LockGuard guard(nursery.lock);
    int error = 0;
    size_t done = 0;
    for (; done < bytes && error == 0; done += kHugePageBytes) {
        error = renew(nursery);
        if (error == 0) error = leave(nursery, slot + done, kOsPageBytes, kBusyTriesMax);
        if (error == 0) {
            error = leave(nursery, slot + done + kOsPageBytes, kHugePageBytes - kOsPageBytes,
                          kBusyTriesMax);
        }
    }
    if (error != 0) {
        clear(nursery);
        sys::advise(slot, bytes, MADV_DONTNEED);
    }
    return error;
}

// A frame that is populated alone, after its pages had been given up for others: a part of a huge
// page, the rest of which stays for the next ones.  False: others are at it, or it has failed.
bool MovingEngine::populate_from_nursery(std::byte* slot, size_t bytes) noexcept {
    if (!nursery_.lock.try_lock()) return false;
    nursery_.used = round_up(nursery_.used, bytes);
    int error = nursery_.used + bytes > kHugePageBytes ? renew(nursery_) : 0;
    // Others wait, and single pages will do.  The next part may be had all the same.
    if (error == 0) error = leave(nursery_, slot, bytes, 0);
    if (error != 0) {
        nursery_.used = std::min(nursery_.used + bytes, kHugePageBytes);
        sys::advise(slot, bytes, MADV_DONTNEED);
    }
    nursery_.lock.unlock();
    return error == 0;
}

int MovingEngine::renew(Nursery& nursery) noexcept {
    nursery.used = kHugePageBytes;
    int error = nursery.memory.renew();
    // A child keeps the addresses: what it maps must not come there.
    if (error == 0) error = nursery.memory.advise(MADV_WIPEONFORK);
    if (error != 0) return error;
    nursery.memory.advise(MADV_HUGEPAGE);
    mark_pages(nursery.memory.address(), kHugePageBytes, std::byte{1});
    nursery.used = 0;
    return 0;
}

int MovingEngine::leave(Nursery& nursery, std::byte* slot, size_t bytes, uint32_t tries) noexcept {
    size_t moved = 0;
    const int error =
        move_when_free(slot, nursery.memory.address() + nursery.used, bytes, tries, &moved);
    if (error != 0) return error;
    nursery.used += bytes;
    mark_pages(slot, bytes, std::byte{0});
    return 0;
}

void MovingEngine::clear(Nursery& nursery) noexcept {
    sys::advise(nursery.memory.address(), kHugePageBytes, MADV_DONTNEED);
    nursery.used = kHugePageBytes;
}

int MovingEngine::install_protected(std::byte* block, std::byte* slot, size_t bytes) noexcept {
    if (const int error = move_in(block, slot, bytes); error != 0) return error;
    const int error = userfault_.write_protect(block, bytes, true);
    if (error != 0) take_back(block, slot, bytes);
    return error;
}

// Another thread may write between the move and the protection.
int MovingEngine::install_piece(std::byte* block, std::byte* slot, std::byte* copy, size_t bytes,
                                bool* written) noexcept {
    const base::UnseenByTsan unseen;
    std::memcpy(copy, slot, bytes);
    if (const int error = install_protected(block, slot, bytes); error != 0) return error;
    if (std::memcmp(copy, block, bytes) != 0) *written = true;
    return 0;
}

}  // namespace hanare::pager
