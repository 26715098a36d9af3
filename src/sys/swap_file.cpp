// SPDX-License-Identifier: Apache-2.0
#include "sys/swap_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "sys/file.hpp"
#include "sys/text_file.hpp"

namespace hanare::sys {
namespace {

constexpr std::string_view kPrefix = "hanare-";
constexpr std::string_view kSuffix = ".swap";
constexpr int kHighestPriority = 32767;

std::string fd_path(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

hanare_status status_of(int error) {
    if (error == EPERM || error == EACCES || error == EROFS) return HANARE_STATUS_PERMISSION;
    return error == ENOSPC ? HANARE_STATUS_STORE_FULL : HANARE_STATUS_SYSTEM;
}

// The swap file `name`, if it is ours and its owner is gone: opened and locked.  Otherwise -1.
int lock_stale(int directory_fd, const char* name) {
    const int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return -1;
    struct stat status = {};
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        flock(fd, LOCK_EX | LOCK_NB) == 0) {
        return fd;
    }
    close(fd);
    return -1;
}

}  // namespace

// A header page of version 1, without label, UUID or bad pages.
Result<void> write_swap_header(int file, uint64_t bytes) {
    constexpr size_t kVersionOffset = 1024;
    constexpr char kMagic[] = "SWAPSPACE2";
    char page[kOsPageBytes] = {};
    const uint32_t words[3] = {1, static_cast<uint32_t>(bytes / kOsPageBytes - 1), 0};
    std::memcpy(page + kVersionOffset, words, sizeof words);
    std::memcpy(page + sizeof page - (sizeof kMagic - 1), kMagic, sizeof kMagic - 1);
    if (pwrite(file, page, sizeof page, 0) != static_cast<ssize_t>(sizeof page) ||
        fsync(file) != 0) {
        return fail_errno(status_of(errno), errno, "writing the header of the swap space");
    }
    return {};
}

Result<SwapFile> SwapFile::create(const std::string& directory, uint64_t bytes,
                                  Guardian* guardian) {
    HANARE_TRY(check_file_bytes("a swap file", bytes));
    SwapFile file;  // its destructor undoes what was done when a later step fails
    // Without a name until it is locked, so that nobody takes it for a leftover.
    file.fd_ = above_standard(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (file.fd_ < 0) {
        return fail_errno(status_of(errno), errno, "creating a swap file in %s", directory.c_str());
    }
    if (flock(file.fd_, LOCK_EX | LOCK_NB) != 0 ||
        fallocate(file.fd_, 0, 0, static_cast<off_t>(bytes)) != 0) {
        return fail_errno(status_of(errno), errno, "allocating a swap file of %s in %s",
                          format_size(bytes).c_str(), directory.c_str());
    }
    HANARE_TRY(write_swap_header(file.fd_, bytes));
    const std::string path =
        directory + "/" + std::string(kPrefix) + std::to_string(getpid()) + std::string(kSuffix);
    if (guardian != nullptr) guardian->watch(Undo::kSwapFile, path);
    if (linkat(AT_FDCWD, fd_path(file.fd_).c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) !=
        0) {
        const int error = errno;
        if (guardian != nullptr) guardian->release(Undo::kSwapFile, path);
        return fail_errno(status_of(error), error, "creating the swap file %s", path.c_str());
    }
    file.path_ = path;
    file.guardian_ = guardian;
    // By name: /proc/swaps shows what administrators can turn off.
    if (swapon(file.path_.c_str(), SWAP_FLAG_PREFER | kHighestPriority) != 0) {
        return fail_errno(status_of(errno), errno, "turning on the swap file %s",
                          file.path_.c_str());
    }
    file.on_ = true;
    return file;
}

SwapFile::SwapFile(SwapFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      on_(std::exchange(other.on_, false)),
      guardian_(other.guardian_),
      path_(std::exchange(other.path_, {})) {}

SwapFile& SwapFile::operator=(SwapFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(on_, other.on_);
    std::swap(guardian_, other.guardian_);
    std::swap(path_, other.path_);
    return *this;
}

SwapFile::~SwapFile() { (void)remove(); }

Result<void> SwapFile::remove() {
    if (on_ && swapoff(path_.c_str()) != 0) {
        return fail_errno(status_of(errno), errno, "turning off the swap file %s", path_.c_str());
    }
    on_ = false;
    if (!path_.empty() && unlink(path_.c_str()) != 0 && errno != ENOENT) {
        return fail_errno(status_of(errno), errno, "deleting the swap file %s", path_.c_str());
    }
    if (guardian_ != nullptr && !path_.empty()) guardian_->release(Undo::kSwapFile, path_);
    path_.clear();
    if (fd_ >= 0) close(std::exchange(fd_, -1));
    return {};
}

Result<SwapTraffic> swap_traffic() {
    HANARE_TRY_ASSIGN(const std::string text, read_text_file("/proc/vmstat"));
    std::istringstream lines(text);
    SwapTraffic traffic;
    std::string name;
    for (uint64_t pages = 0; lines >> name >> pages;) {
        if (name == "pswpin") traffic.read_bytes = pages * kOsPageBytes;
        if (name == "pswpout") traffic.written_bytes = pages * kOsPageBytes;
    }
    return traffic;
}

int remove_stale_swap_files(const std::string& directory) {
    DIR* listing = opendir(directory.c_str());
    if (listing == nullptr) return 0;
    std::vector<std::string> names;
    while (const dirent* entry = readdir(listing)) {
        const std::string_view name = entry->d_name;
        if (name.starts_with(kPrefix) && name.ends_with(kSuffix)) names.emplace_back(name);
    }
    int removed = 0;
    for (const std::string& name : names) {
        const int fd = lock_stale(dirfd(listing), name.c_str());
        if (fd < 0) continue;
        // EINVAL: it was never, or is no longer, turned on.
        if ((swapoff(fd_path(fd).c_str()) == 0 || errno == EINVAL) &&
            unlinkat(dirfd(listing), name.c_str(), 0) == 0) {
            ++removed;
        }
        close(fd);
    }
    closedir(listing);
    return removed;
}

}  // namespace hanare::sys
