// SPDX-License-Identifier: Apache-2.0
#include "intercept/file_kinds.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <atomic>

#include "sys/raw_thread.hpp"

namespace hanare::intercept {

namespace {

FileKind kind_of(uint64_t file) noexcept {
    constexpr unsigned kMemoryDevices = 1;  // /dev/zero, /dev/null, /dev/urandom
    struct stat status;
    if (sys::raw_call3(SYS_fstat, file, reinterpret_cast<uint64_t>(&status), 0) != 0) {
        return FileKind::kSlow;
    }
    const bool is_prompt = S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) ||
                           (S_ISCHR(status.st_mode) && major(status.st_rdev) == kMemoryDevices);
    return is_prompt ? FileKind::kPrompt : FileKind::kSlow;
}

}  // namespace

constinit std::atomic<FileKind> file_kinds[kFilesMax] = {};

FileKind find_file_kind(uint64_t file) noexcept {
    const FileKind kind = kind_of(file);
    file_kinds[file].store(kind, std::memory_order_relaxed);
    return kind;
}

void forget_files(uint64_t first, uint64_t last) noexcept {
    for (uint64_t file = first; file <= last && file < kFilesMax; ++file) {
        file_kinds[file].store(FileKind::kUnknown, std::memory_order_relaxed);
    }
}

}  // namespace hanare::intercept
