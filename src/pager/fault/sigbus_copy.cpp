// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/sigbus_copy.hpp"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

#include "base/assert.hpp"
#include "base/sanitizers.hpp"
#include "base/units.hpp"
#include "sys/memory.hpp"

namespace hanare::pager {

namespace {
// So much of a block is in memory twice while it is withdrawn.
constexpr size_t kPartBytes = 256 * kKiB;
}  // namespace

int CopyingEngine::install_writable(std::byte* block, std::byte* slot, size_t bytes,
                                    FilePlace) noexcept {
    return copy_in(block, slot, bytes, false);
}

int CopyingEngine::install_read_only(std::byte* block, std::byte* slot, size_t bytes,
                                     bool* written) noexcept {
    *written = false;
    return copy_in(block, slot, bytes, true);
}

int CopyingEngine::withdraw(std::byte* block, std::byte* slot, size_t bytes, FilePlace) noexcept {
    if (const int error = userfault_.write_protect(block, bytes, true); error != 0) return error;
    // From now on writers wait for the block's state, and so do readers of parts that are gone.
    const base::UnseenByTsan unseen;
    for (size_t done = 0; done < bytes; done += kPartBytes) {
        const size_t part = std::min(kPartBytes, bytes - done);
        std::memcpy(slot + done, block + done, part);
        const int error = sys::advise(block + done, part, MADV_DONTNEED);
        HANARE_ASSERT(error == 0);
    }
    return 0;
}

int CopyingEngine::copy_in(std::byte* block, std::byte* slot, size_t bytes,
                           bool write_protected) noexcept {
    size_t copied = 0;
    const int error = copy(block, slot, bytes, write_protected, &copied);
    // What was mapped may have been written to: take it back.
    if (error != 0 && copied > 0) {
        const int back_error = withdraw(block, slot, copied, {});
        HANARE_ASSERT(back_error == 0);
    }
    return error;
}

}  // namespace hanare::pager
