// SPDX-License-Identifier: Apache-2.0
#include "space/partition.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>

#include "base/units.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::space {

namespace {

int64_t native(long number, const Arguments& arguments) noexcept {
    return sys::raw_call6(number, arguments[0], arguments[1], arguments[2], arguments[3],
                          arguments[4], arguments[5]);
}

bool is_fixed(uint64_t flags) noexcept { return (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0; }

// What asks for a certain place, or for pages that only the kernel can place.
bool is_the_kernels(uint64_t flags) noexcept {
    return (flags & (MAP_32BIT | MAP_GROWSDOWN | MAP_HUGETLB)) != 0;
}

}  // namespace

// 0: there is no room.
int64_t Partition::map_anywhere(const Arguments& arguments, uint64_t bytes) noexcept {
    const int64_t result = map_at_free_place(used_, arguments, bytes, start_);
    return result != 0 ? result : map_at_free_place(used_, arguments, bytes);
}

int64_t Partition::map(const Arguments& arguments) noexcept {
    const uint64_t bytes = round_up(arguments[1], kOsPageBytes);
    if (bytes == 0 || bytes < arguments[1] || is_the_kernels(arguments[3])) {
        return native(SYS_mmap, arguments);
    }
    const TurnGuard guard(turn_);
    if (!is_fixed(arguments[3])) {
        const int64_t result = map_anywhere(arguments, bytes);
        return result != 0 ? result : native(SYS_mmap, arguments);
    }
    const int64_t result = native(SYS_mmap, arguments);
    if (succeeded(result)) note(static_cast<uint64_t>(result), bytes);
    return result;
}

int64_t Partition::map_between(uint64_t bytes, uint64_t low, uint64_t high) noexcept {
    const TurnGuard guard(turn_);
    const int64_t result = map_at_free_place(
        used_, {0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~uint64_t{0}, 0},
        bytes, low);
    if (result <= 0) return -ENOMEM;
    const auto place = static_cast<uint64_t>(result);
    if (place + bytes <= high) return result;
    sys::raw_call3(SYS_munmap, place, bytes, 0);
    forget(place, bytes);
    return -ENOMEM;
}

int64_t Partition::unmap(const Arguments& arguments) noexcept {
    const TurnGuard guard(turn_);
    const int64_t result = native(SYS_munmap, arguments);
    if (result == 0) forget(arguments[0], round_up(arguments[1], kOsPageBytes));
    return result;
}

void Partition::give_back() noexcept {
    const Range all = whole();
    native(SYS_munmap, {all.begin, all.end - all.begin, 0, 0, 0, 0});
    used_.clear();
    turn_.reset();
}

// Closed pages, where nothing is; 0: there is no room.
uint64_t Partition::reserve(uint64_t bytes) noexcept {
    const int64_t result = map_anywhere(
        {0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, ~uint64_t{0}, 0}, bytes);
    return result > 0 ? static_cast<uint64_t>(result) : 0;
}

// In place where there is room behind it, as the kernel does.
int64_t Partition::move(const Arguments& arguments, Range from, uint64_t bytes) noexcept {
    const Range grown = {from.end, from.begin + bytes};
    if (grown.begin < grown.end && used_.is_free(grown)) {
        const int64_t result =
            sys::raw_call6(SYS_mremap, from.begin, arguments[1], arguments[2], 0, 0, 0);
        if (succeeded(result)) {
            note(from.begin, bytes);
            return result;
        }
    }
    const uint64_t place = reserve(bytes);
    if (place == 0) return native(SYS_mremap, arguments);
    const int64_t result = sys::raw_call6(SYS_mremap, from.begin, arguments[1], arguments[2],
                                          arguments[3] | MREMAP_FIXED, place, 0);
    if (!succeeded(result)) {
        sys::raw_call3(SYS_munmap, place, bytes, 0);
        forget(place, bytes);
        return result;
    }
    if ((arguments[3] & MREMAP_DONTUNMAP) == 0) forget(from.begin, from.end - from.begin);
    return result;
}

int64_t Partition::remap(const Arguments& arguments) noexcept {
    const uint64_t old_bytes = round_up(arguments[1], kOsPageBytes);
    const uint64_t bytes = round_up(arguments[2], kOsPageBytes);
    const Range from = {arguments[0], arguments[0] + old_bytes};
    const TurnGuard guard(turn_);
    const bool moves_anywhere = (arguments[3] & (MREMAP_MAYMOVE | MREMAP_FIXED)) == MREMAP_MAYMOVE;
    const bool grows = bytes > old_bytes || (arguments[3] & MREMAP_DONTUNMAP) != 0;
    if (moves_anywhere && grows && used_.contains(from)) return move(arguments, from, bytes);
    const int64_t result = native(SYS_mremap, arguments);
    if (!succeeded(result)) return result;
    if ((arguments[3] & MREMAP_DONTUNMAP) == 0) forget(from.begin, old_bytes);
    note(static_cast<uint64_t>(result), bytes);
    return result;
}

}  // namespace hanare::space
