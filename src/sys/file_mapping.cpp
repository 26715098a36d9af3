// SPDX-License-Identifier: Apache-2.0
#include "sys/file_mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <utility>

namespace hanare::sys {
namespace {

Result<void> done(int error, const char* what) {
    if (error != 0) return fail_errno(HANARE_STATUS_SYSTEM, error, "%s", what);
    return {};
}

}  // namespace

Result<FileMapping> FileMapping::create(int file, uint64_t offset, size_t bytes, size_t alignment) {
    HANARE_TRY_ASSIGN(Mapping range, Mapping::reserve(bytes, alignment));
    if (mmap(range.address(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
             static_cast<off_t>(offset)) == MAP_FAILED) {
        return fail_errno(HANARE_STATUS_NO_MEMORY, errno, "mapping %zu bytes of a file", bytes);
    }
    return FileMapping(std::move(range));
}

Result<void> FileMapping::expect(AccessOrder order) {
    switch (order) {
        case AccessOrder::kUnknown: return done(range_.advise(MADV_NORMAL), "MADV_NORMAL");
        case AccessOrder::kSequential:
            return done(range_.advise(MADV_SEQUENTIAL), "MADV_SEQUENTIAL");
        case AccessOrder::kRandom: return done(range_.advise(MADV_RANDOM), "MADV_RANDOM");
    }
    return {};
}

Result<void> FileMapping::flush() {
    const bool flushed = msync(range_.address(), range_.bytes(), MS_SYNC) == 0;
    return done(flushed ? 0 : errno, "writing a mapped file");
}

Result<void> FileMapping::unload() { return done(range_.advise(MADV_DONTNEED), "MADV_DONTNEED"); }

Result<void> drop_cached_pages(int file) {
    return done(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), "POSIX_FADV_DONTNEED");
}

Result<void> page_out(const Mapping& mapping) {
    return done(mapping.advise(MADV_PAGEOUT), "MADV_PAGEOUT");
}

void advise_huge_pages(const Mapping& mapping, bool wanted) noexcept {
    (void)mapping.advise(wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

}  // namespace hanare::sys
