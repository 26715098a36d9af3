// SPDX-License-Identifier: Apache-2.0
#include "space/free_place.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>

#include "base/units.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::space {

int64_t map_at_free_place(UsedRanges& used, const Arguments& arguments, uint64_t bytes,
                          uint64_t from) noexcept {
    const uint64_t alignment = bytes >= kHugePageBytes ? kHugePageBytes : kOsPageBytes;
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
