// SPDX-License-Identifier: Apache-2.0
#include "intercept/area.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#include "base/units.hpp"
#include "sys/raw_call.hpp"

namespace hanare::intercept {

using pager::block_access::kForeign;
using pager::block_access::kGuarded;
using pager::block_access::kStack;
using pager::block_access::kUsable;

namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;

constexpr std::byte kZeroPage[kOsPageBytes] = {};

std::byte* pointer(uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

// In local memory for good, protected by the kernel.
bool is_guarded(RangeKind kind) {
    return kind == RangeKind::kGuarded || kind == RangeKind::kSealed;
}
RangeKind guarded_by(int protection) {
    return protection == PROT_NONE ? RangeKind::kSealed : RangeKind::kGuarded;
}

int64_t result_of(int status) { return status == 0 ? 0 : -errno; }

constexpr int kPopulateRead = 22;  // MADV_...
constexpr int kPopulateWrite = 23;
constexpr int kDontNeedLocked = 24;
constexpr int kCollapse = 25;

// Advice that can be followed, or need not be.  What a program relies on is refused, as kernels do
// that do not know it: guards, pages that are zeros in a child.
bool is_known(int advice) {
    switch (advice) {
        case MADV_NORMAL:
        case MADV_RANDOM:
        case MADV_SEQUENTIAL:
        case MADV_WILLNEED:
        case MADV_DONTNEED:
        case MADV_FREE:
        case MADV_DONTFORK:
        case MADV_DOFORK:
        case MADV_MERGEABLE:
        case MADV_UNMERGEABLE:
        case MADV_HUGEPAGE:
        case MADV_NOHUGEPAGE:
        case MADV_DONTDUMP:
        case MADV_DODUMP:
        case MADV_KEEPONFORK:
        case MADV_COLD:
        case MADV_PAGEOUT:
        case kPopulateRead:
        case kPopulateWrite:
        case kDontNeedLocked:
        case kCollapse: return true;
        default: return false;
    }
}

}  // namespace

Area::Area(pager::Pool& pool, pager::Region& region, bool allocates)
    : pool_(pool), region_(region), allocates_(allocates) {
    if (allocates_) gaps_.give(0, region_.block_count);
}

bool Area::is_empty(uint32_t block) const noexcept {
    const uint32_t word = region_.block(block).load();
    return pager::block_word::state(word) == pager::BlockState::kAbsent &&
           (word & pager::block_word::kStored) == 0;
}

void Area::note_peak() noexcept {
    bytes_peak_ = std::max(bytes_peak_, ranges_.bytes(RangeKind::kUsable));
}

int64_t Area::map(size_t bytes, RangeKind kind) {
    if (!allocates_ || bytes > end() - begin()) return -ENOMEM;
    const std::optional<uint32_t> block = gaps_.take(blocks_of(bytes));
    if (!block) return -ENOMEM;
    const uintptr_t at = address_of(*block);
    ranges_.set(at, at + bytes, kind);
    refresh_access(at, at + bytes);
    note_peak();
    return static_cast<int64_t>(at);
}

// The blocks are nobody's any more, if they were free.
void Area::claim(uintptr_t begin, uintptr_t end) {
    if (!allocates_) return;
    for (uint32_t block = block_of(begin); block < block_behind(end); ++block) {
        gaps_.take_at(block, 1);
    }
}

void Area::map_over(uintptr_t begin, uintptr_t end, RangeKind kind) {
    unmap(begin, end);
    claim(begin, end);
    ranges_.set(begin, end, kind);
    refresh_access(begin, end);
    note_peak();
}

// Of the kernel's errors most come before it unmaps anything (no such pages, a file that cannot be
// mapped so), and programs then try something else for the same addresses: so it is tried elsewhere
// first.
int64_t Area::map_foreign(uintptr_t begin, uintptr_t end, int protection, int flags, int file,
                          int64_t offset) {
    const bool may_be_refused = (flags & MAP_ANONYMOUS) == 0 || (flags & MAP_HUGETLB) != 0;
    if (may_be_refused) {
        constexpr int kNow = MAP_FIXED | MAP_POPULATE | MAP_LOCKED;
        void* const tried =
            sys::raw::mmap(nullptr, end - begin, protection, flags & ~kNow, file, offset);
        if (tried == MAP_FAILED) return -errno;
        sys::raw::munmap(tried, end - begin);
    }
    unmap(begin, end);
    claim(begin, end);
    // Blocks that are the program's in part stay where they are.
    for (const uint32_t block : {block_of(begin), block_of(end - 1)}) {
        const uintptr_t at = address_of(block);
        if (ranges_.any(at, at + region_.block_bytes)) pin(block);
    }
    const void* mapped =
        sys::raw::mmap(pointer(begin), end - begin, protection, flags | MAP_FIXED, file, offset);
    if (mapped == MAP_FAILED) {
        const int error = errno;
        // What was there is gone, but the addresses stay the program's.
        ranges_.set(begin, end, RangeKind::kReserved);
        for (uint32_t block = block_of(begin); block < block_behind(end); ++block) {
            unpin_unless_needed(block);
        }
        refresh_access(begin, end);
        return -error;
    }
    ranges_.set(begin, end, RangeKind::kForeign);
    refresh_access(begin, end);
    return static_cast<int64_t>(begin);
}

void Area::unmap(uintptr_t begin, uintptr_t end) {
    for (const Range& range : ranges_.overlapping(begin, end)) give_back_to_pager(range);
    ranges_.erase(begin, end);
    clear(begin, end);
    for (uint32_t block = block_of(begin); block < block_behind(end); ++block) {
        unpin_unless_needed(block);
    }
    refresh_access(begin, end);
}

// What the kernel has mapped, or protects, becomes ordinary memory of the region again.
void Area::give_back_to_pager(const Range& range) {
    const size_t bytes = range.end - range.begin;
    if (is_guarded(range.kind)) sys::raw::mprotect(pointer(range.begin), bytes, kReadWrite);
    if (range.kind != RangeKind::kForeign) return;
    for (uint32_t block = block_of(range.begin); block < block_behind(range.end); ++block) {
        const uintptr_t from = std::max(range.begin, address_of(block));
        const uintptr_t to = std::min(range.end, address_of(block + 1));
        const bool pinned = (region_.access_of(block).load() & kGuarded) != 0;
        pager::Engine& engine = region_.pager->engine();
        const bool in_parts = pinned && engine.serves_parts();
        sys::map_fresh(pointer(from), to - from, pinned && !in_parts);
        sys::advise(pointer(from), to - from, MADV_NOHUGEPAGE);
        // Where protection is what the engine uses, a block that is mapped has none.
        if (!pinned || in_parts) engine.attach(pointer(from), to - from);
        // Not before: mappings that have had pages of their own never become one with their
        // neighbours, and the kernel moves nothing out of a block of several.
        for (uintptr_t at = from; in_parts && at < to; at += kOsPageBytes) {
            engine.install_part(pointer(at), kZeroPage, kOsPageBytes, true);
        }
    }
}

// Zeros from now on.  Blocks of which nothing else is mapped are free.
void Area::clear(uintptr_t begin, uintptr_t end) {
    for (uint32_t block = block_of(begin); block < block_behind(end); ++block) {
        const uintptr_t from = address_of(block);
        const uintptr_t to = address_of(block + 1);
        const bool others =
            (from < begin && ranges_.any(from, begin)) || (end < to && ranges_.any(end, to));
        const bool pinned = (region_.access_of(block).load() & (kStack | kGuarded)) != 0;
        if (!ranges_.any(from, to)) {
            free_block(block);
        } else if (!others && !pinned) {
            forget(block);
        } else {
            clear_part(block, std::max(begin, from), std::min(end, to));
        }
    }
}

void Area::clear_part(uint32_t block, uintptr_t begin, uintptr_t end) {
    if (is_empty(block)) return;
    const uintptr_t part_bytes = region_.part_bytes;
    const uintptr_t first = round_up(begin, part_bytes);
    const uintptr_t last = round_down(end, part_bytes);
    uint64_t parts = 0;
    for (uintptr_t at = first; at < last; at += part_bytes) {
        parts |= uint64_t{1} << region_.part_of(pointer(at));
    }
    const bool forgotten = parts != 0 && region_.pager->discard_parts(region_, block, parts) == 0;
    if (forgotten && first == begin && last == end) return;
    if (forgotten && first < last) {
        write_zeros(block, begin, first);
        write_zeros(block, last, end);
    } else {
        write_zeros(block, begin, end);
    }
}

// As the program could.  Another thread may note meanwhile that its stack is in the block.
void Area::write_zeros(uint32_t block, uintptr_t begin, uintptr_t end) {
    const uint8_t before = region_.access_of(block).fetch_or(kUsable);
    std::memset(pointer(begin), 0, end - begin);
    if ((before & kUsable) == 0) {
        region_.access_of(block).fetch_and(static_cast<uint8_t>(~kUsable));
    }
}

// All of it is zeros from now on.  Where the kernel still holds its pages they stay, and are
// overwritten.
void Area::forget(uint32_t block) {
    if (region_.pager->discard(region_, block) == HANARE_STATUS_OK) return;
    write_zeros(block, address_of(block), address_of(block + 1));
}

void Area::free_block(uint32_t block) {
    const uint8_t access = region_.access_of(block).load();
    if (access == 0 && is_empty(block)) {
        if (allocates_ && gaps_.free_from(block) == 0) gaps_.give(block, 1);
        return;
    }
    if ((access & kStack) != 0) region_.pager->unpin_for_good(region_, block);
    if ((access & kGuarded) != 0) region_.pager->unpin_for_good(region_, block);
    forget(block);
    pool_.set_access(region_, block, block + 1, 0);
    if (allocates_ && gaps_.free_from(block) == 0) gaps_.give(block, 1);
}

void Area::refresh_access(uintptr_t begin, uintptr_t end) {
    const uint32_t last = block_behind(end);
    for (uint32_t block = block_of(begin); block < last; ++block) {
        const uintptr_t from = address_of(block);
        const uintptr_t to = address_of(block + 1);
        uint8_t access = region_.access_of(block).load() & (kStack | kGuarded);
        if (ranges_.any(from, to, RangeKind::kUsable) ||
            ranges_.any(from, to, RangeKind::kGuarded) ||
            ranges_.any(from, to, RangeKind::kSealed)) {
            access |= kUsable;
        }
        if (ranges_.any(from, to, RangeKind::kForeign)) access |= kForeign;
        if (access != region_.access_of(block).load()) {
            pool_.set_access(region_, block, block + 1, access);
        }
    }
}

void Area::pin(uint32_t block) {
    const uint8_t before = region_.access_of(block).fetch_or(kGuarded | kUsable);
    if ((before & kGuarded) == 0) region_.pager->pin_for_good(region_, block);
}

void Area::unpin_unless_needed(uint32_t block) {
    const uintptr_t from = address_of(block);
    const uintptr_t to = address_of(block + 1);
    if ((region_.access_of(block).load() & kGuarded) == 0 ||
        ranges_.any(from, to, RangeKind::kGuarded) || ranges_.any(from, to, RangeKind::kSealed) ||
        ranges_.any(from, to, RangeKind::kForeign)) {
        return;
    }
    region_.access_of(block).fetch_and(static_cast<uint8_t>(~kGuarded));
    region_.pager->unpin_for_good(region_, block);
}

// In local memory for good, protected by the kernel.
int64_t Area::guard(uintptr_t begin, uintptr_t end, int protection) {
    uint64_t more = 0;
    for (uint32_t block = block_of(begin); block < block_behind(end); ++block) {
        if ((region_.access_of(block).load() & (kGuarded | kStack)) == 0)
            more += region_.block_bytes;
    }
    if (more != 0 && !region_.pager->frames().has_room_for_kept(more)) return -ENOMEM;
    for (uint32_t block = block_of(begin); block < block_behind(end); ++block) pin(block);
    if (sys::raw::mprotect(pointer(begin), end - begin, protection) != 0) return -errno;
    ranges_.set(begin, end, guarded_by(protection));
    return 0;
}

// It holds nothing any more, and so needs no protection by the kernel.
void Area::forget_sealed(const Range& range) {
    give_back_to_pager(range);
    ranges_.set(range.begin, range.end, RangeKind::kReserved);
    for (uint32_t block = block_of(range.begin); block < block_behind(range.end); ++block) {
        clear_part(block, std::max(range.begin, address_of(block)),
                   std::min(range.end, address_of(block + 1)));
        unpin_unless_needed(block);
    }
    refresh_access(range.begin, range.end);
}

// No access, but what it holds is kept.
int64_t Area::reserve(const Range& range) {
    for (uint32_t block = block_of(range.begin); block < block_behind(range.end); ++block) {
        const uintptr_t from = std::max(range.begin, address_of(block));
        const uintptr_t to = std::min(range.end, address_of(block + 1));
        const bool hidden =
            is_whole(block, from, to) && region_.pager->hide(region_, block) == HANARE_STATUS_OK;
        if (!hidden && !is_empty(block)) {
            if (const int64_t result = guard(from, to, PROT_NONE); result != 0) return result;
        } else {
            ranges_.set(from, to, RangeKind::kReserved);
        }
    }
    return 0;
}

int64_t Area::protect_range(const Range& range, int protection) {
    const size_t bytes = range.end - range.begin;
    if (range.kind == RangeKind::kForeign) {
        return result_of(sys::raw::mprotect(pointer(range.begin), bytes, protection));
    }
    if (is_guarded(range.kind)) {
        if (sys::raw::mprotect(pointer(range.begin), bytes, protection) != 0) return -errno;
        if (protection != kReadWrite) {
            ranges_.set(range.begin, range.end, guarded_by(protection));
            return 0;
        }
        ranges_.set(range.begin, range.end, RangeKind::kUsable);
        for (uint32_t block = block_of(range.begin); block < block_behind(range.end); ++block) {
            unpin_unless_needed(block);
        }
        return 0;
    }
    if (protection == kReadWrite) {
        ranges_.set(range.begin, range.end, RangeKind::kUsable);
        return 0;
    }
    if (protection == PROT_NONE) {
        return range.kind == RangeKind::kReserved ? 0 : reserve(range);
    }
    bool empty = true;
    for (uint32_t block = block_of(range.begin); block < block_behind(range.end); ++block) {
        empty = empty && is_empty(block);
    }
    if (!empty) return guard(range.begin, range.end, protection);
    const int64_t mapped = map_foreign(range.begin, range.end, protection,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapped < 0 ? mapped : 0;
}

int64_t Area::protect(uintptr_t begin, uintptr_t end, int protection) {
    uintptr_t reached = begin;
    for (const Range& range : ranges_.overlapping(begin, end)) {
        if (range.begin != reached) return -ENOMEM;
        if (const int64_t result = protect_range(range, protection); result != 0) return result;
        refresh_access(range.begin, range.end);
        reached = range.end;
    }
    note_peak();
    return reached == end ? 0 : -ENOMEM;
}

int64_t Area::advise(uintptr_t begin, uintptr_t end, int advice) {
    const bool forgets =
        advice == MADV_DONTNEED || advice == MADV_FREE || advice == kDontNeedLocked;
    if (!is_known(advice)) return -EINVAL;
    uintptr_t reached = begin;
    int64_t result = 0;
    for (const Range& range : ranges_.overlapping(begin, end)) {
        if (range.begin != reached) result = -ENOMEM;
        reached = range.end;
        if (range.kind == RangeKind::kForeign || (is_guarded(range.kind) && !forgets)) {
            if (sys::raw::madvise(pointer(range.begin), range.end - range.begin, advice) != 0) {
                result = -errno;
            }
        } else if (forgets && !is_guarded(range.kind)) {
            clear(range.begin, range.end);
        } else if (forgets && range.kind == RangeKind::kSealed) {
            forget_sealed(range);
        } else if (forgets && advice != MADV_FREE) {
            result = -EINVAL;  // it would have to be written to; MADV_FREE may leave it as it is
        } else if (advice == MADV_WILLNEED) {
            region_.pager->request_read_ahead(region_, block_of(range.begin),
                                              block_behind(range.end) - block_of(range.begin), 1);
        }
    }
    return reached == end ? result : -ENOMEM;
}

bool Area::resize(uintptr_t old_end, uintptr_t new_end) {
    if (new_end <= old_end) {
        if (new_end < old_end) unmap(new_end, old_end);
        return true;
    }
    if (!contains(new_end - 1) || ranges_.any(old_end, new_end)) return false;
    if (allocates_) {
        const uint32_t first = block_behind(old_end);
        const uint32_t last = block_behind(new_end);
        if (last > first && !gaps_.take_at(first, last - first)) return false;
    }
    ranges_.set(old_end, new_end, RangeKind::kUsable);
    refresh_access(old_end, new_end);
    note_peak();
    return true;
}

int64_t Area::move(uintptr_t begin, uintptr_t end, size_t bytes) {
    const int64_t mapped = map(bytes, RangeKind::kUsable);
    if (mapped < 0) return mapped;
    const auto target = static_cast<uintptr_t>(mapped);
    const bool aligned = (begin - this->begin()) % region_.block_bytes == 0;
    for (uintptr_t at = begin; at < end;) {
        const uint32_t block = block_of(at);
        const uintptr_t next = std::min(end, address_of(block + 1));
        const uintptr_t to = target + (at - begin);
        // The rest of the last block is zeros, or nobody's.
        const bool relocated =
            aligned && !ranges_.any(next, address_of(block + 1)) &&
            region_.pager->relocate(region_, block, block_of(to)) == HANARE_STATUS_OK;
        if (!relocated && !is_empty(block)) std::memcpy(pointer(to), pointer(at), next - at);
        at = next;
    }
    unmap(begin, end);
    return mapped;
}

}  // namespace hanare::intercept
