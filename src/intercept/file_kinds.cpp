// SPDX-License-Identifier: Apache-2.0
#include "intercept/file_kinds.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <atomic>

#include "sys/raw_thread.hpp"

namespace hanare::intercept {

namespace {

constexpr unsigned kMemoryDevices = 1;  // /dev/zero, /dev/null, /dev/urandom

// Whose numbers let_transfers_begin() is about; 0: nobody's yet.  A child of vfork has the memory,
// and perhaps other descriptors.
constinit std::atomic<uint64_t> owner{0};
constinit std::atomic<bool> is_over{false};
// How many changes have begun, and how many are under way.
constinit std::atomic<uint64_t> changes{0};
constinit std::atomic<uint64_t> changing{0};

FileKind kind_of(uint64_t file) noexcept {
    struct stat status;
    if (sys::raw_call3(SYS_fstat, file, reinterpret_cast<uint64_t>(&status), 0) != 0) {
        return FileKind::kSlow;
    }
    const bool is_prompt = S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) ||
                           (S_ISCHR(status.st_mode) && major(status.st_rdev) == kMemoryDevices);
    return is_prompt ? FileKind::kPrompt : FileKind::kSlow;
}

// statfs(2).  Of these it is known that they copy, unless O_DIRECT is set.
bool is_copying_system(uint64_t file) noexcept {
    constexpr int64_t kExt4 = 0xef53;
    constexpr int64_t kXfs = 0x5846'5342;
    constexpr int64_t kBtrfs = 0x9123'683e;
    constexpr int64_t kF2fs = 0xf2f5'2010;
    constexpr int64_t kTmpfs = 0x0102'1994;
    constexpr int64_t kOverlay = 0x794c'7630;
    struct statfs system;
    if (sys::raw_call3(SYS_fstatfs, file, reinterpret_cast<uint64_t>(&system), 0) != 0) {
        return false;
    }
    switch (static_cast<int64_t>(system.f_type)) {
        case kExt4:
        case kXfs:
        case kBtrfs:
        case kF2fs:
        case kTmpfs:
        case kOverlay: return true;
        default: return false;
    }
}

// null, zero, full, random, urandom.  What is read of others of that kind may be gone then (kmsg).
bool is_of_no_content(const struct stat& status) noexcept {
    const unsigned number = minor(status.st_rdev);
    return S_ISCHR(status.st_mode) && major(status.st_rdev) == kMemoryDevices &&
           (number == 3 || number == 5 || (number >= 7 && number <= 9));
}

bool may_read_at_offsets(uint64_t file, const struct stat& status) noexcept {
    const int64_t flags = sys::raw_call3(SYS_fcntl, file, F_GETFL, 0);
    return S_ISREG(status.st_mode) && flags >= 0 && (flags & O_DIRECT) == 0 &&
           is_copying_system(file);
}

void let_none_begin() noexcept {
    for (uint64_t file = 0; file < kFilesMax; ++file) hook::let_transfers_begin(file, false, false);
}

}  // namespace

constinit std::atomic<FileKind> file_kinds[kFilesMax] = {};

FileKind find_file_kind(uint64_t file) noexcept {
    const FileKind kind = kind_of(file);
    file_kinds[file].store(kind, std::memory_order_relaxed);
    return kind;
}

void begin_to_change_files(uint64_t first, uint64_t last) noexcept {
    changing.fetch_add(1);
    changes.fetch_add(1);
    for (uint64_t file = first; file <= last && file < kFilesMax; ++file) {
        file_kinds[file].store(FileKind::kUnknown, std::memory_order_relaxed);
        hook::let_transfers_begin(file, false, false);
    }
}

void end_changing_files() noexcept { changing.fetch_sub(1); }

// What changes meanwhile is not known to be what was looked at.
void consider_beginning(uint64_t file) noexcept {
    const uint64_t before = changes.load();
    const bool is_sure = !is_over.load() && changing.load() == 0 &&
                         !hook::do_files_change_unseen() && !hook::threads_begin_unseen();
    if (file >= kFilesMax || !is_sure) return;
    const auto self = static_cast<uint64_t>(sys::raw_call3(SYS_getpid, 0, 0, 0));
    uint64_t nobody = 0;
    if (!owner.compare_exchange_strong(nobody, self) && nobody != self) return;
    struct stat status;
    if (sys::raw_call3(SYS_fstat, file, reinterpret_cast<uint64_t>(&status), 0) != 0) return;
    const bool all = is_of_no_content(status);
    hook::let_transfers_begin(file, all || may_read_at_offsets(file, status), all);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (is_over.load() || changes.load() != before || hook::do_files_change_unseen()) {
        hook::let_transfers_begin(file, false, false);
    }
}

void end_beginning() noexcept {
    is_over.store(true);
    let_none_begin();
}

void begin_anew_in_child() noexcept {
    let_none_begin();
    owner.store(0);
    changing.store(0);
}

}  // namespace hanare::intercept
