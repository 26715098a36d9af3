// SPDX-License-Identifier: Apache-2.0
#include "sys/sparse_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>

#include "base/units.hpp"

namespace hanare::sys {
namespace {

// Looks first: a page that was never written to would take memory otherwise.
void overwrite(std::byte* begin, const std::byte* end) {
    const auto bytes = static_cast<size_t>(end - begin);
    const auto is_set = [](std::byte byte) { return byte != std::byte{0}; };
    if (std::any_of(begin, begin + bytes, is_set)) std::memset(begin, 0, bytes);
}

}  // namespace

Result<SparseMemory> SparseMemory::reserve(size_t bytes) {
    HANARE_TRY_ASSIGN(Mapping memory,
                      Mapping::reserve(round_up(bytes, kOsPageBytes), kOsPageBytes));
    // A huge page for each byte written here and there would not be sparse.  Refused only by
    // kernels that have none.
    memory.advise(MADV_NOHUGEPAGE);
    return SparseMemory(std::move(memory));
}

void SparseMemory::clear(std::byte* address, size_t bytes) const noexcept {
    std::byte* const end = address + bytes;
    const auto begin_number = reinterpret_cast<uintptr_t>(address);
    const uintptr_t end_number = begin_number + bytes;
    const uintptr_t first_page = round_up(begin_number, kOsPageBytes);
    const uintptr_t pages_end = round_down(end_number, kOsPageBytes);
    if (first_page >= pages_end) return overwrite(address, end);
    std::byte* const pages = address + (first_page - begin_number);
    std::byte* const behind = end - (end_number - pages_end);
    overwrite(address, pages);
    overwrite(behind, end);
    const auto pages_bytes = static_cast<size_t>(behind - pages);
    if (sys::advise(pages, pages_bytes, MADV_DONTNEED) == 0) return;
    // Locked memory (mlockall) cannot be given back.
    for (std::byte* page = pages; page < behind; page += kOsPageBytes) {
        overwrite(page, page + kOsPageBytes);
    }
}

}  // namespace hanare::sys
