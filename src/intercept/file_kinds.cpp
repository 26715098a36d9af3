// SPDX-License-Identifier: Apache-2.0
#include "intercept/file_kinds.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <atomic>

#include "sys/raw_thread.hpp"

namespace hanare::intercept {

namespace {

constexpr uint64_t kFilesMax = 1024;
enum Kind : uint8_t { kUnknown, kPrompt, kSlow };
constinit std::atomic<uint8_t> kinds[kFilesMax] = {};

Kind kind_of(uint64_t file) noexcept {
    constexpr unsigned kMemoryDevices = 1;  // /dev/zero, /dev/null, /dev/urandom
    struct stat status;
    if (sys::raw_call3(SYS_fstat, file, reinterpret_cast<uint64_t>(&status), 0) != 0) return kSlow;
    const bool is_prompt = S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) ||
                           (S_ISCHR(status.st_mode) && major(status.st_rdev) == kMemoryDevices);
    return is_prompt ? kPrompt : kSlow;
}

}  // namespace

bool transfers_promptly(uint64_t file) noexcept {
    if (file >= kFilesMax) return false;
    uint8_t kind = kinds[file].load(std::memory_order_relaxed);
    if (kind == kUnknown) {
        kind = kind_of(file);
        kinds[file].store(kind, std::memory_order_relaxed);
    }
    return kind == kPrompt;
}

void forget_files(uint64_t first, uint64_t last) noexcept {
    for (uint64_t file = first; file <= last && file < kFilesMax; ++file) {
        kinds[file].store(kUnknown, std::memory_order_relaxed);
    }
}

}  // namespace hanare::intercept
