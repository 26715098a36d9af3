// SPDX-License-Identifier: Apache-2.0
#include "sys/file_mapping.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

namespace hanare::sys {

Result<FileMapping> FileMapping::create(int file, uint64_t offset, size_t bytes, size_t alignment) {
    HANARE_TRY_ASSIGN(Mapping range, Mapping::reserve(bytes, alignment));
    if (mmap(range.address(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
             static_cast<off_t>(offset)) == MAP_FAILED) {
        return fail_errno(HANARE_STATUS_NO_MEMORY, errno, "mapping %zu bytes of a file", bytes);
    }
    return FileMapping(std::move(range));
}

Result<void> FileMapping::expect_sequential() {
    if (const int error = range_.advise(MADV_SEQUENTIAL)) {
        return fail_errno(HANARE_STATUS_SYSTEM, error, "MADV_SEQUENTIAL");
    }
    return {};
}

void advise_huge_pages(const Mapping& mapping, bool wanted) noexcept {
    (void)mapping.advise(wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

}  // namespace hanare::sys
