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

int CopyingEngine::attach(std::byte* range, size_t bytes) noexcept {
    return userfault_.register_range(range, bytes);
}

int CopyingEngine::install_writable(std::byte* block, std::byte* slot, size_t bytes,
                                    FilePlace) noexcept {
    return copy_in(block, slot, bytes, false);
}

int CopyingEngine::install_read_only(std::byte* block, std::byte* slot, size_t bytes,
                                     bool* written) noexcept {
    *written = false;
    return copy_in(block, slot, bytes, true);
}

int CopyingEngine::allow_writes(std::byte* block, size_t bytes) noexcept {
    return userfault_.write_protect(block, bytes, false);
}

int CopyingEngine::install_part(std::byte* part, const std::byte* content, size_t bytes,
                                bool writable) noexcept {
    // Of several pages none may be written while the others are missing: there may be no others.
    const bool write_protected = !writable || bytes > kOsPageBytes;
    size_t copied = 0;
    int error = userfault_.copy(part, content, bytes, write_protected, &copied);
    if (error == 0 && writable && write_protected) error = allow_writes(part, bytes);
    if (error != 0 && copied > 0) discard(part, copied);
    return error;
}

int CopyingEngine::forbid_writes(std::byte* block, size_t bytes) noexcept {
    return userfault_.write_protect(block, bytes, true);
}

int CopyingEngine::discard(std::byte* part, size_t bytes) noexcept {
    return sys::advise(part, bytes, MADV_DONTNEED);
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
    const int error = userfault_.copy(block, slot, bytes, write_protected, &copied);
    // What was mapped may have been written to: take it back.
    if (error != 0 && copied > 0) {
        const int back_error = withdraw(block, slot, copied, {});
        HANARE_ASSERT(back_error == 0);
    }
    return error;
}

}  // namespace hanare::pager
