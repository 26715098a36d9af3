// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/segv_remap.hpp"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#include "base/assert.hpp"
#include "base/sanitizers.hpp"
#include "base/units.hpp"
#include "sys/lock.hpp"
#include "sys/memory.hpp"

namespace hanare::pager {

namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
// About two seconds in all.
constexpr uint32_t kTriesMax = 20'000;
constexpr uint32_t kPause_us = 100;

// For memory that holds the only copy of a block.  The kernel can refuse it only while there is no
// mapping left and this one has become one with its neighbour, which another thread withdraws at
// the same time.
void allow_access(std::byte* memory, size_t bytes) noexcept {
    int error = sys::protect(memory, bytes, kReadWrite);
    for (uint32_t tries = 0; error != 0 && tries < kTriesMax; ++tries) {
        sys::yield_for_us(kPause_us);
        error = sys::protect(memory, bytes, kReadWrite);
    }
    HANARE_ASSERT(error == 0);
}

}  // namespace

int SegvRemap::attach(std::byte* range, size_t bytes) noexcept {
    return sys::make_inaccessible(range, bytes);
}

// Slots that come and go become one mapping again only if the kernel keeps the books of their pages
// (anon_vma) together from the start, which the first page does.
int SegvRemap::attach_arena(std::byte* arena, size_t) noexcept {
    static_cast<volatile std::byte&>(arena[0]) = std::byte{0};
    return sys::advise(arena, kOsPageBytes, MADV_DONTNEED);
}

// The kernel provides zeros when a page is touched.  Whole huge pages are touched here: direct
// transfers then have few segments, and page tables are changed in larger steps.
int SegvRemap::populate(std::byte* slot, size_t bytes) noexcept {
    if (const int error = sys::protect(slot, bytes, kReadWrite); error != 0) return error;
    if (reinterpret_cast<uintptr_t>(slot) % kHugePageBytes != 0 || bytes % kHugePageBytes != 0) {
        return 0;
    }
    sys::advise(slot, bytes, MADV_HUGEPAGE);
    for (size_t done = 0; done < bytes; done += kHugePageBytes) {
        static_cast<volatile std::byte&>(slot[done]) = std::byte{0};
    }
    sys::advise(slot, bytes, MADV_NOHUGEPAGE);
    return 0;
}

int SegvRemap::install_writable(std::byte* block, std::byte* slot, size_t bytes,
                                FilePlace) noexcept {
    return sys::move_mapping(block, slot, bytes, PROT_NONE);
}

int SegvRemap::install_read_only(std::byte* block, std::byte* slot, size_t bytes,
                                 bool* written) noexcept {
    *written = false;
    if (const int error = sys::protect(slot, bytes, PROT_READ); error != 0) return error;
    if (const int error = sys::move_mapping(block, slot, bytes, PROT_NONE); error != 0) {
        allow_access(slot, bytes);
        return error;
    }
    // So that the empty slot joins its neighbours; where it is refused it costs a mapping.
    sys::protect(slot, bytes, kReadWrite);
    return 0;
}

int SegvRemap::allow_writes(std::byte* block, size_t bytes) noexcept {
    return sys::protect(block, bytes, kReadWrite);
}

int SegvRemap::withdraw(std::byte* block, std::byte* slot, size_t bytes, FilePlace) noexcept {
    // Without rights before it moves: what stays behind is an empty mapping of the same rights, and
    // the kernel would supply it with zeros.
    if (sys::protect(block, bytes, PROT_NONE) != 0) return EAGAIN;
    const int error = sys::move_mapping(slot, block, bytes, kReadWrite);
    if (error == ENOMEM && withdraw_by_copy(block, slot, bytes) == 0) return 0;
    if (error != 0) {
        allow_access(block, bytes);
        return error;
    }
    allow_access(slot, bytes);
    // What is behind remembers where the pages came from; a fresh mapping joins its neighbours.
    sys::make_inaccessible(block, bytes);
    return 0;
}

// Takes no mapping more than there are.  The block is in memory twice meanwhile.
int SegvRemap::withdraw_by_copy(std::byte* block, std::byte* slot, size_t bytes) noexcept {
    int error = sys::protect(slot, bytes, kReadWrite);
    if (error == 0) error = sys::protect(block, bytes, PROT_READ);
    if (error != 0) return error;
    const base::UnseenByTsan unseen;
    std::memcpy(slot, block, bytes);
    if (sys::make_inaccessible(block, bytes) != 0) {
        sys::protect(block, bytes, PROT_NONE);
        sys::advise(block, bytes, MADV_DONTNEED);
    }
    return 0;
}

int SegvRemap::drop(std::byte* range, size_t bytes) noexcept {
    return sys::make_inaccessible(range, bytes);
}

}  // namespace hanare::pager
