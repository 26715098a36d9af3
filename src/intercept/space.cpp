// SPDX-License-Identifier: Apache-2.0
#include "intercept/space.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <utility>

#include "base/units.hpp"
#include "hook/system_calls.hpp"
#include "intercept/file_kinds.hpp"
#include "intercept/static_memory.hpp"
#include "pager/whereabouts.hpp"
#include "sys/futex.hpp"
#include "sys/process_usage.hpp"
#include "sys/raw_call.hpp"
#include "sys/signal.hpp"

namespace hanare::intercept {

namespace {

// Addresses for mappings, and behind the break: as much as the system lets us have, down to the
// least that is of use.  Some run times (GHC's) reserve a tebibyte and more for all that they may
// ever need; what is larger is the kernel's.
constexpr uint64_t kMappingBytesMax = uint64_t{1} << 42;
constexpr uint64_t kReservedBytesMax = kMappingBytesMax / 2;
// Whoever wishes for the place of so much, or less, can do without (Go, V8, Java's compressed
// oops), and uses it as a heap, which is to be far.
constexpr uint64_t kHeapReservationMax = 32 * kGiB;
constexpr uint64_t kHeapBytesMax = uint64_t{1} << 38;
constexpr uint64_t kAreaBytesMin = 64 * kMiB;
// Of the addresses that `ulimit -v` leaves: the program needs some for files and threads, too.
constexpr uint64_t kAddressesShare = 2;
// Where they are few, an area of fewer times the budget is worth a line.
constexpr uint64_t kAreaPerBudget = 8;

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr int kFixed = MAP_FIXED | MAP_FIXED_NOREPLACE;
// What must be as the program says it, and not in a region.
constexpr int kNotAdopted =
    MAP_GROWSDOWN | MAP_STACK | MAP_LOCKED | MAP_HUGETLB | MAP_32BIT | kFixed;

bool is_private_anonymous(int flags) {
    return (flags & MAP_TYPE) == MAP_PRIVATE && (flags & MAP_ANONYMOUS) != 0;
}

std::byte* pointer(uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

uintptr_t page_up(uintptr_t address) { return round_up(address, uintptr_t{kOsPageBytes}); }

uintptr_t kernel_break(uintptr_t address) {
    return static_cast<uintptr_t>(sys::raw::syscall(SYS_brk, address));
}

}  // namespace

// The largest area that is worth trying; a multiple of what blocks are aligned to.
uint64_t area_bytes_max(uint64_t most, uint64_t alignment) {
    const uint64_t free = sys::free_address_bytes();
    return free == UINT64_MAX ? most
                              : std::min(most, round_down(free / kAddressesShare, alignment));
}

// Signals first, then the lock; faults may come.
class HANARE_SCOPED_CAPABILITY Space::Lock {
public:
    explicit Lock(Space& space) noexcept HANARE_ACQUIRE(space.lock_) : guard_(space.lock_) {}
    ~Lock() HANARE_RELEASE() {}

private:
    sys::SignalBlockButFaults signals_;
    sys::LockGuard guard_;
};

Space::Space(const SpaceOptions& options)
    : options_(options), first_break_(kernel_break(0)), break_(first_break_) {}

template <typename Visit>
bool Space::for_each_part(uintptr_t begin, uintptr_t end, Visit visit) {
    uintptr_t covered = 0;
    for (std::optional<Area>& area : areas_) {
        if (!area) continue;
        const uintptr_t from = std::max(begin, area->begin());
        const uintptr_t to = std::min(end, area->end());
        if (from >= to) continue;
        covered += to - from;
        visit(*area, from, to);
    }
    return covered == end - begin;
}

template <typename Visit>
void Space::for_each_rest(uintptr_t begin, uintptr_t end, Visit visit) {
    while (begin < end) {
        const Area* inside = nullptr;
        uintptr_t next = end;
        for (const std::optional<Area>& area : areas_) {
            if (area && area->contains(begin)) inside = &*area;
            if (area && area->begin() > begin) next = std::min(next, area->begin());
        }
        if (inside == nullptr) visit(begin, next);
        begin = inside != nullptr ? inside->end() : next;
    }
}

// Whether it is time to adopt memory.
bool Space::has_asked_for(uint64_t bytes) {
    if (is_open()) return true;
    if (failed_) return false;
    asked_bytes_ += bytes;
    if (asked_bytes_ < options_.begin_bytes) return false;
    open();
    return is_open();
}

void Space::open() {
    Result<void> opened = hook::catch_system_calls();
    if (opened) opened = open_pool();
    if (!opened) {
        failed_ = true;
        std::snprintf(failure_, sizeof failure_, "%s", opened.error().text);
    } else {
        ask_while_unattended();
        open_mappings();
        if (areas_[kMappings]) open_heap();
        look_for_shortage();
        open_.store(!failed_, std::memory_order_release);
    }
    is_decided_.store(1, std::memory_order_release);
    sys::futex_wake_all(is_decided_);
    if (hooks_.opened != nullptr) hooks_.opened();
}

bool Space::stand_aside() {
    const sys::LockGuard guard(lock_);
    if (is_open()) return false;
    failed_ = true;  // without a word
    is_decided_.store(1, std::memory_order_release);
    sys::futex_wake_all(is_decided_);
    return true;
}

void Space::wait_until_decided() const noexcept {
    while (!is_decided()) sys::futex_wait(is_decided_, 0);
}

// The program has one thread.
void Space::set_hooks(const Hooks& hooks) {
    hooks_ = hooks;
    ask_while_unattended();
    if (is_decided() && hooks_.opened != nullptr) hooks_.opened();
}

void Space::set_attended() noexcept {
    is_attended_.store(true);
    pool_->pager().set_on_need(nullptr);
}

void Space::ask_while_unattended() noexcept {
    if (pool_ != nullptr && !is_attended_.load()) pool_->pager().set_on_need(hooks_.needs_memory);
}

Result<void> Space::open_pool() {
    HANARE_TRY_ASSIGN(auto pool, pager::Pool::open(options_.pool));
    HANARE_TRY(pool->prepare_to_adopt());
    pool_ = std::move(pool);
    return {};
}

Result<Area*> Space::adopt(AreaIndex index, sys::Mapping range, uintptr_t front) {
    HANARE_TRY_ASSIGN(pager::Region* const region, pool_->adopt(std::move(range)));
    areas_[index].emplace(*pool_, *region, index == kMappings);
    regions_[index].store(region, std::memory_order_release);
    set_range(index, areas_[index]->begin(), region->range.bytes(), front);
    return &*areas_[index];
}

void Space::open_mappings() {
    const uint64_t alignment = area_alignment();
    // What does not hold what the program has asked for would only take its addresses away.
    const uint64_t least = std::max(kAreaBytesMin, round_up(asked_bytes_, alignment));
    uint64_t bytes = area_bytes_max(kMappingBytesMax, alignment);
    for (; bytes >= least; bytes = round_down(bytes / 2, alignment)) {
        auto range = sys::Mapping::reserve(bytes, alignment);
        if (!range) continue;
        // Allocators join mappings that happen to be neighbours.
        const auto begin = reinterpret_cast<uintptr_t>(range->address());
        if (adopt(kMappings, std::move(*range), hook::far_in_front_of(begin))) return;
    }
}

// The kernel's break is moved to where a block begins, and the area lies behind it: what was there
// before stays the kernel's.
void Space::open_heap() {
    break_ = kernel_break(0);
    kernel_break_ = round_up(break_, options_.pool.block_bytes);
    if (kernel_break(kernel_break_) != kernel_break_) return;
    const uintptr_t heap_begin = sys::heap_begin();
    const uintptr_t front = heap_begin != 0 ? heap_begin : hook::far_in_front_of(kernel_break_);
    uint64_t bytes = area_bytes_max(kHeapBytesMax, area_alignment());
    for (; bytes >= kAreaBytesMin; bytes = round_down(bytes / 2, area_alignment())) {
        auto range = sys::Mapping::reserve_at(pointer(kernel_break_), bytes);
        if (range && adopt(kHeap, std::move(*range), front)) return;
    }
}

// Of addresses: what finds no room in an area stays the kernel's.
void Space::look_for_shortage() {
    const uint64_t mappings = areas_[kMappings] ? areas_[kMappings]->region().range.bytes() : 0;
    const uint64_t heap = areas_[kHeap] ? areas_[kHeap]->region().range.bytes() : 0;
    if (mappings >= std::min(kAreaPerBudget * options_.pool.local_bytes, kMappingBytesMax)) return;
    std::snprintf(
        failure_, sizeof failure_,
        "addresses are short (ulimit -v?): %s of mappings and %s of heap can be far memory",
        format_size(mappings).c_str(), format_size(heap).c_str());
    failed_ = !areas_[kMappings];
    if (failed_) pool_.reset();
}

void Space::adopt_static_memory() {
    const Lock guard(*this);
    const StaticMemory memory = StaticMemory::of_executable(options_.pool.block_bytes);
    if (memory.bytes() < std::max(options_.begin_bytes, options_.pool.block_bytes)) return;
    if (!has_asked_for(memory.bytes())) return;
    const Result<StaticMemory::Content> content = memory.take_content();
    if (!content) return;
    const auto begin = reinterpret_cast<uintptr_t>(memory.begin());
    if (auto area = adopt(kStatic, sys::Mapping::take_over(memory.begin(), memory.bytes()),
                          begin - options_.pool.block_bytes - kOsPageBytes)) {
        (*area)->map_over(begin, begin + memory.bytes(), RangeKind::kUsable);
    }
    content->put_back();
}

int64_t Space::mmap(uintptr_t address, size_t bytes, int protection, int flags, int file,
                    int64_t offset) {
    if ((flags & kFixed) != 0) {
        if (!overlaps(address, address + bytes)) return kKernelAnswers;
        const Lock guard(*this);
        return map_fixed(address, bytes, protection, flags, file, offset);
    }
    if (!is_private_anonymous(flags) || (flags & kNotAdopted) != 0 ||
        bytes < options_.threshold_bytes || bytes > kReservedBytesMax ||
        (protection != kReadWrite && protection != PROT_NONE)) {
        return kKernelAnswers;
    }
    const Lock guard(*this);
    const bool is_reservation = protection == PROT_NONE;
    const bool is_wished_for = is_reservation && address != 0 && bytes > kHeapReservationMax;
    if (is_wished_for && wishes_count_) return kKernelAnswers;
    // What is reserved now may become usable later, and must be ours then.
    if (!has_asked_for(bytes) || !areas_[kMappings]) return kKernelAnswers;
    const int64_t mapped = areas_[kMappings]->map(
        page_up(bytes), is_reservation ? RangeKind::kReserved : RangeKind::kUsable);
    if (mapped == -ENOMEM) return kKernelAnswers;
    const auto begin = static_cast<uintptr_t>(mapped);
    misplaced_ =
        is_wished_for ? Range{begin, begin + page_up(bytes), RangeKind::kReserved} : Range{};
    return mapped;
}

// Who gives back very much that was reserved elsewhere than wished for will try other places until
// one is right (OpenJDK's ZGC): the kernel has what is wished for, where it is free.
void Space::note_rejected(uintptr_t begin, uintptr_t end) {
    const Range misplaced = std::exchange(misplaced_, {});
    if (misplaced.end != 0 && misplaced.begin == begin && misplaced.end == end)
        wishes_count_ = true;
}

int64_t Space::map_fixed(uintptr_t address, size_t bytes, int protection, int flags, int file,
                         int64_t offset) {
    const uintptr_t end = address + page_up(bytes);
    if (address % kOsPageBytes != 0 || bytes == 0 || end < address) return -EINVAL;
    if ((flags & MAP_FIXED_NOREPLACE) != 0) {
        bool taken = false;
        for_each_part(address, end, [&](Area& area, uintptr_t from, uintptr_t to) {
            taken = taken || area.ranges().any(from, to);
        });
        if (taken) return -EEXIST;
    }
    if (const int64_t mapped = map_rest(address, end, protection, flags, file, offset);
        mapped < 0) {
        return mapped;
    }
    const bool ordinary = is_private_anonymous(flags) && (flags & (kNotAdopted & ~kFixed)) == 0 &&
                          (protection == kReadWrite || protection == PROT_NONE);
    int64_t result = static_cast<int64_t>(address);
    for_each_part(address, end, [&](Area& area, uintptr_t from, uintptr_t to) {
        if (result < 0) return;
        if (ordinary) {
            area.map_over(from, to,
                          protection == PROT_NONE ? RangeKind::kReserved : RangeKind::kUsable);
            return;
        }
        const int plain = (flags & ~kFixed) | (MAP_FIXED & kFixed);
        const int64_t mapped = area.map_foreign(from, to, protection, plain, file,
                                                offset + static_cast<int64_t>(from - address));
        if (mapped < 0) result = mapped;
    });
    return result;
}

// What of a mapping lies outside of the areas.
int64_t Space::map_rest(uintptr_t address, uintptr_t end, int protection, int flags, int file,
                        int64_t offset) {
    int64_t result = 0;
    for_each_rest(address, end, [&](uintptr_t from, uintptr_t to) {
        if (result < 0) return;
        const void* const mapped = sys::raw::mmap(pointer(from), to - from, protection, flags, file,
                                                  offset + static_cast<int64_t>(from - address));
        if (mapped == MAP_FAILED) result = -errno;
    });
    return result;
}

int64_t Space::munmap(uintptr_t address, size_t bytes) {
    const uintptr_t end = address + page_up(bytes);
    if (address % kOsPageBytes != 0 || bytes == 0 || end < address) return kKernelAnswers;
    if (!overlaps(address, end)) return kKernelAnswers;
    const Lock guard(*this);
    note_rejected(address, end);
    uintptr_t outside = address;
    for_each_part(address, end, [&](Area& area, uintptr_t from, uintptr_t to) {
        if (outside < from) sys::raw::munmap(pointer(outside), from - outside);
        area.unmap(from, to);
        outside = to;
    });
    if (outside < end) sys::raw::munmap(pointer(outside), end - outside);
    return 0;
}

int64_t Space::mprotect(uintptr_t address, size_t bytes, int protection) {
    const uintptr_t end = address + page_up(bytes);
    if (address % kOsPageBytes != 0 || bytes == 0 || end < address) return kKernelAnswers;
    if (!overlaps(address, end)) return kKernelAnswers;
    const Lock guard(*this);
    int64_t result = 0;
    for_each_part(address, end, [&](Area& area, uintptr_t from, uintptr_t to) {
        if (result == 0) result = area.protect(from, to, protection);
    });
    for_each_rest(address, end, [&](uintptr_t from, uintptr_t to) {
        const bool failed = sys::raw::mprotect(pointer(from), to - from, protection) != 0;
        if (failed && result == 0) result = -errno;
    });
    return result;
}

int64_t Space::madvise(uintptr_t address, size_t bytes, int advice) {
    const uintptr_t end = address + page_up(bytes);
    if (address % kOsPageBytes != 0 || bytes == 0 || end < address) return kKernelAnswers;
    if (!overlaps(address, end)) return kKernelAnswers;
    int64_t result = 0;
    {
        const Lock guard(*this);
        for_each_part(address, end, [&](Area& area, uintptr_t from, uintptr_t to) {
            const int64_t advised = area.advise(from, to, advice);
            if (result == 0) result = advised;
        });
        for_each_rest(address, end, [&](uintptr_t from, uintptr_t to) {
            const bool failed = sys::raw::madvise(pointer(from), to - from, advice) != 0;
            if (failed && result == 0) result = -errno;
        });
    }
    if (advice == MADV_PAGEOUT && result == 0) result = page_out(address, end);
    return result;
}

// Piece by piece, and without the lock, since this writes: others may map and unmap meanwhile, and
// signals come between pieces.  As long as there is no keeper memory is not short.
int64_t Space::page_out(uintptr_t begin, uintptr_t end) {
    if (!pool_->keeper().works()) return 0;
    while (const std::optional<Piece> piece = first_usable(begin, end)) {
        if (!pool_->write_out(*piece->region, piece->first, piece->last)) return -EIO;
        begin = piece->end;
    }
    return 0;
}

std::optional<Space::Piece> Space::first_usable(uintptr_t begin, uintptr_t end) {
    constexpr uint64_t kPieceBytes = 8 * kMiB;
    const Lock guard(*this);
    std::optional<Piece> lowest;
    uintptr_t lowest_begin = end;
    for (std::optional<Area>& area : areas_) {
        if (!area) continue;
        const auto range = area->ranges().first(begin, end, RangeKind::kUsable);
        if (!range || range->begin >= lowest_begin) continue;
        pager::Region& region = area->region();
        lowest_begin = range->begin;
        const uintptr_t behind =
            std::min(range->end, round_down(range->begin, kPieceBytes) + kPieceBytes);
        lowest = {&region, region.index_of(pointer(range->begin)),
                  region.index_of(pointer(behind - 1)) + 1, behind};
    }
    return lowest;
}

// Piece by piece, and without the lock: the kernel writes.  What Hanare keeps is in no file.
int64_t Space::msync(uintptr_t address, size_t bytes, int flags) {
    const uintptr_t end = page_up(address + bytes);
    if (address % kOsPageBytes != 0 || end < address || !overlaps(address, end)) {
        return kKernelAnswers;
    }
    int64_t result = ignore(address, bytes);
    for (uintptr_t begin = address; begin < end;) {
        const Range piece = first_of_kernel(begin, end);
        if (piece.begin == end) break;
        const bool failed =
            sys::raw::syscall(SYS_msync, piece.begin, piece.end - piece.begin, flags) != 0;
        if (failed && result == 0) result = -errno;
        begin = piece.end;
    }
    return result;
}

Range Space::first_of_kernel(uintptr_t begin, uintptr_t end) {
    const Lock guard(*this);
    Range first = {end, end, RangeKind::kForeign};
    const auto note = [&first](uintptr_t from, uintptr_t to) {
        if (from < first.begin) first = {from, to, RangeKind::kForeign};
    };
    for_each_rest(begin, end, note);
    for_each_part(begin, end, [&](Area& area, uintptr_t from, uintptr_t to) {
        if (const auto range = area.ranges().first(from, to, RangeKind::kForeign)) {
            note(range->begin, range->end);
        }
    });
    return first;
}

int64_t Space::ignore(uintptr_t address, size_t bytes) {
    const uintptr_t begin = round_down(address, uintptr_t{kOsPageBytes});
    const uintptr_t end = page_up(address + bytes);
    if (!overlaps(begin, end)) return kKernelAnswers;
    const Lock guard(*this);
    bool mapped = true;
    for_each_part(begin, end, [&](Area& area, uintptr_t from, uintptr_t to) {
        uintptr_t reached = from;
        for (const Range& range : area.ranges().overlapping(from, to)) {
            mapped = mapped && range.begin == reached;
            reached = range.end;
        }
        mapped = mapped && reached == to;
    });
    return mapped ? 0 : -ENOMEM;
}

int64_t Space::mremap(uintptr_t address, size_t bytes, size_t new_bytes, int flags,
                      uintptr_t new_address) {
    const bool fixed = (flags & MREMAP_FIXED) != 0;
    bytes = page_up(bytes);
    new_bytes = page_up(new_bytes);
    const bool into = fixed && overlaps(new_address, new_address + new_bytes);
    if (!overlaps(address, address + std::max(bytes, size_t{1})) && !into) return kKernelAnswers;
    const Lock guard(*this);
    if (address % kOsPageBytes != 0 || bytes == 0 || new_bytes == 0 ||
        (flags & MREMAP_DONTUNMAP) != 0 || (fixed && (flags & MREMAP_MAYMOVE) == 0) ||
        (fixed && new_address % kOsPageBytes != 0)) {
        return -EINVAL;
    }
    if (into) {
        if (address < new_address + new_bytes && new_address < address + bytes) return -EINVAL;
        const int64_t mapped = map_fixed(new_address, new_bytes, kReadWrite,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (mapped < 0) return mapped;
        std::memcpy(pointer(new_address), pointer(address), std::min(bytes, new_bytes));
    }
    for (std::optional<Area>& area : areas_) {
        if (!area || !area->contains(address)) continue;
        const bool usable = area->contains(address + bytes - 1) &&
                            area->ranges().all(address, address + bytes, RangeKind::kUsable);
        if (into) {
            area->unmap(address, address + bytes);
            return static_cast<int64_t>(new_address);
        }
        if (!fixed && new_bytes <= bytes && area->contains(address + bytes - 1)) {
            area->resize(address + bytes, address + new_bytes);
            return static_cast<int64_t>(address);
        }
        if (!usable) return area->ranges().any(address, address + bytes) ? -ENOMEM : -EFAULT;
        if (!fixed && area->resize(address + bytes, address + new_bytes)) {
            return static_cast<int64_t>(address);
        }
        return grow_elsewhere(*area, address, bytes, new_bytes, flags, new_address);
    }
    sys::raw::munmap(pointer(address), bytes);
    return static_cast<int64_t>(new_address);
}

int64_t Space::grow_elsewhere(Area& area, uintptr_t address, size_t bytes, size_t new_bytes,
                              int flags, uintptr_t new_address) {
    if ((flags & MREMAP_MAYMOVE) == 0) return -ENOMEM;
    if ((flags & MREMAP_FIXED) == 0 && &area == &*areas_[kMappings]) {
        return area.move(address, address + bytes, new_bytes);
    }
    int64_t mapped = 0;
    if ((flags & MREMAP_FIXED) != 0) {
        const void* at = sys::raw::mmap(pointer(new_address), new_bytes, kReadWrite,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        mapped = at == MAP_FAILED ? -errno : static_cast<int64_t>(new_address);
    } else {
        mapped =
            areas_[kMappings] ? areas_[kMappings]->map(new_bytes, RangeKind::kUsable) : -ENOMEM;
    }
    if (mapped < 0) return mapped;
    std::memcpy(pointer(static_cast<uintptr_t>(mapped)), pointer(address),
                std::min(bytes, new_bytes));
    area.unmap(address, address + bytes);
    return mapped;
}

int64_t Space::brk(uintptr_t address) {
    const Lock guard(*this);
    if (!is_open()) {
        // Some ask for ever less until they get it (GCL).
        const uint64_t growth = address > break_ ? address - break_ : 0;
        if (growth == 0 || growth > kHeapBytesMax || !has_asked_for(growth)) {
            break_ = kernel_break(address);
            return static_cast<int64_t>(break_);
        }
    }
    return set_break(address);
}

int64_t Space::set_break(uintptr_t address) {
    if (!areas_[kHeap]) {
        break_ = kernel_break(address);
        return static_cast<int64_t>(break_);
    }
    Area& heap = *areas_[kHeap];
    if (address < first_break_) return static_cast<int64_t>(break_);
    if (address < kernel_break_) {
        // Below is the kernel's; it stays, and is zeros when it comes back.
        if (break_ > kernel_break_) heap.unmap(kernel_break_, page_up(break_));
        const uintptr_t top = std::min(page_up(break_), kernel_break_);
        if (page_up(address) < top) {
            std::memset(pointer(page_up(address)), 0, top - page_up(address));
        }
        break_ = address;
        return static_cast<int64_t>(break_);
    }
    const uintptr_t old_end = std::max(page_up(break_), kernel_break_);
    const uintptr_t new_end = page_up(address);
    if (new_end > heap.end()) return static_cast<int64_t>(break_);
    if (new_end != old_end) {
        const bool begins = old_end == kernel_break_;
        if (begins) {
            heap.map_over(old_end, new_end, RangeKind::kUsable);
        } else if (!heap.resize(old_end, new_end)) {
            return static_cast<int64_t>(break_);
        }
    }
    break_ = address;
    return static_cast<int64_t>(break_);
}

// The keeper first: who holds the lock may wait for one of its transfers, and it never waits for
// whoever holds the lock.
bool Space::prepare_fork(bool* has_row, uint32_t* row) noexcept HANARE_NO_THREAD_SAFETY_ANALYSIS {
    *has_row = false;
    if (is_open()) {
        if (hooks_.fork_begins != nullptr) hooks_.fork_begins();
        pool_->keeper().pause();
    }
    lock_.lock();
    if (!is_open()) return true;
    const std::optional<uint32_t> child = pool_->prepare_fork();
    if (!child) {
        lock_.unlock();
        if (hooks_.fork_ended != nullptr) hooks_.fork_ended(-1);
        return false;
    }
    *has_row = true;
    *row = *child;
    return true;
}

void Space::finish_fork(bool has_row, uint32_t row,
                        int child) noexcept HANARE_NO_THREAD_SAFETY_ANALYSIS {
    if (has_row) pool_->finish_fork(row, child);
    if (child > 0) forks_.fetch_add(1, std::memory_order_relaxed);
    lock_.unlock();
    if (has_row && hooks_.fork_ended != nullptr) hooks_.fork_ended(child);
}

// What of the areas the kernel maps for the program.
class Space::Foreign final : public pager::ForeignMemory {
public:
    explicit Foreign(const Space& space) noexcept : space_(space) {}

    Piece next(std::byte* begin, std::byte* end) const noexcept override {
        for (const std::optional<Area>& area : space_.areas_) {
            if (!area || !area->contains(reinterpret_cast<uintptr_t>(begin))) continue;
            const std::optional<Range> found =
                area->ranges().first(reinterpret_cast<uintptr_t>(begin),
                                     reinterpret_cast<uintptr_t>(end), RangeKind::kForeign);
            if (found) return {pointer(found->begin), pointer(found->end)};
        }
        return {end, end};
    }

private:
    const Space& space_;
};

int Space::become_child(bool has_row, uint32_t row) noexcept HANARE_NO_THREAD_SAFETY_ANALYSIS {
    const int error = has_row ? pool_->become_child(row, Foreign(*this), hooks_.needs_memory) : 0;
    is_attended_.store(false);
    has_threads_.store(false);
    begin_anew_in_child();
    lock_.unlock();
    if (error == 0 && hooks_.child_began != nullptr) hooks_.child_began();
    return error;
}

Space::Figures Space::figures() noexcept HANARE_NO_THREAD_SAFETY_ANALYSIS {
    const sys::SignalBlockButFaults signals;
    if (!lock_.try_lock()) return figures_;
    figures_ = {};
    for (std::optional<Area>& area : areas_) {
        if (!area) continue;
        figures_.far_bytes += area->ranges().bytes(RangeKind::kUsable);
        figures_.used_bytes += pager::used_bytes(area->region());
    }
    const auto peak = [&](AreaIndex index) {
        return areas_[index] ? areas_[index]->bytes_peak() : 0;
    };
    figures_.heap_bytes_peak = peak(kHeap);
    figures_.static_bytes_peak = peak(kStatic);
    figures_.mapping_bytes_peak = peak(kMappings);
    lock_.unlock();
    return figures_;
}

}  // namespace hanare::intercept
