// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/sigbus_copy.hpp"

#include <cstring>
#include <sys/mman.h>

#include "sys/memory.hpp"

namespace hanare::pager {

int SigbusCopy::attach(std::byte* range, size_t bytes) noexcept {
    return userfault_.register_range(range, bytes);
}

int SigbusCopy::install_writable(std::byte* block, std::byte* slot, size_t bytes) noexcept {
    return copy_in(block, slot, bytes, false);
}

int SigbusCopy::install_read_only(std::byte* block, std::byte* slot, size_t bytes,
                                  bool* written) noexcept {
    *written = false;
    return copy_in(block, slot, bytes, true);
}

int SigbusCopy::allow_writes(std::byte* block, size_t bytes) noexcept {
    return userfault_.write_protect(block, bytes, false);
}

int SigbusCopy::withdraw(std::byte* block, std::byte* slot, size_t bytes) noexcept {
    // A writer that is not stopped by the protection any more waits for the block's state.
    if (const int error = userfault_.write_protect(block, bytes, true); error != 0) return error;
    std::memcpy(slot, block, bytes);
    return sys::advise(block, bytes, MADV_DONTNEED);
}

int SigbusCopy::copy_in(std::byte* block, std::byte* slot, size_t bytes,
                        bool write_protected) noexcept {
    size_t copied = 0;
    const int error = userfault_.copy(block, slot, bytes, write_protected, &copied);
    if (error == 0) return sys::advise(slot, bytes, MADV_DONTNEED);
    // What was mapped may have been written to: take it back.
    if (copied > 0) withdraw(block, slot, copied);
    return error;
}

}  // namespace hanare::pager
