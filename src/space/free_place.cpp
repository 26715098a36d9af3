// SPDX-License-Identifier: Apache-2.0
#include "space/free_place.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>

#include "base/units.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::space {

namespace {

// Where large pages can be for what may have some.  What is used of stacks, of libraries and of
// buffers between processes lies in fewer page tables close to each other.
uint64_t alignment_of(uint64_t bytes, uint64_t flags) noexcept {
    constexpr uint64_t kSharedMin = 16 * kHugePageBytes;
    const uint64_t type = flags & MAP_TYPE;
    const bool is_for_large_pages = type == MAP_PRIVATE
                                        ? (flags & (MAP_ANONYMOUS | MAP_STACK)) == MAP_ANONYMOUS
                                        : bytes >= kSharedMin;
    return is_for_large_pages && bytes >= kHugePageBytes ? kHugePageBytes : kOsPageBytes;
}

}  // namespace

int64_t map_at_free_place(UsedRanges& used, const Arguments& arguments, uint64_t bytes,
                          uint64_t from) noexcept {
    const uint64_t alignment = alignment_of(bytes, arguments[3]);
    for (;;) {
        const uint64_t place = used.find_free(bytes, alignment, from);
        if (place == 0) return 0;
        const int64_t result =
            sys::raw_call6(SYS_mmap, place, arguments[1], arguments[2],
                           arguments[3] | MAP_FIXED_NOREPLACE, arguments[4], arguments[5]);
        if (succeeded(result)) used.add({place, place + bytes});
        if (result != -EEXIST) return result;
        from = place + alignment;
    }
}

}  // namespace hanare::space
