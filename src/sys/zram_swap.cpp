// SPDX-License-Identifier: Apache-2.0
#include "sys/zram_swap.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "sys/file.hpp"
#include "sys/swap_file.hpp"
#include "sys/text_file.hpp"

namespace hanare::sys {
namespace {

constexpr std::string_view kPrefix = "hanare-";
constexpr std::string_view kSuffix = ".zram";
constexpr const char* kControl = "/sys/class/zram-control";
constexpr const char* kDevice = "/dev/zram";
constexpr int kHighestPriority = 32767;
constexpr int kRemoveTries = 100;
constexpr int kRemovePause_ms = 10;

hanare_status status_of(int error) {
    return error == EPERM || error == EACCES || error == EROFS ? HANARE_STATUS_PERMISSION
                                                               : HANARE_STATUS_SYSTEM;
}

std::string number_of(const std::string& path) {
    return path.substr(std::string_view(kDevice).size());
}

std::string attribute(const std::string& path, const char* name) {
    return "/sys/block/zram" + number_of(path) + "/" + name;
}

// The device's path, which is nothing until the device is there.
Result<std::string> add_device() {
    if (access(kControl, F_OK) != 0) {
        return fail(HANARE_STATUS_NOT_SUPPORTED, "the kernel has no zram (modprobe zram)");
    }
    HANARE_TRY_ASSIGN(const std::string number, read_text_file(std::string(kControl) + "/hot_add"));
    return kDevice + number.substr(0, number.find('\n'));
}

// What a note says: after a reboot the number may be that of somebody else's device.
std::string note_of(const std::string& path) {
    return read_text_file("/proc/sys/kernel/random/boot_id").value_or("?\n") + path;
}

// Opens and locks a note of ours that nobody holds; -1 when it is none.
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

// The device that the note names; empty when it is gone, or of another boot.
std::string device_of_note(int fd) {
    char buffer[256];
    const ssize_t got = read(fd, buffer, sizeof buffer);
    const std::string text(buffer, got > 0 ? static_cast<size_t>(got) : 0);
    const std::string path = text.substr(text.find('\n') + 1);
    const bool known = path.starts_with(kDevice) && !number_of(path).empty() &&
                       number_of(path).find_first_not_of("0123456789") == std::string::npos;
    return known && text == note_of(path) && access(path.c_str(), F_OK) == 0 ? path : "";
}

}  // namespace

// Somebody who looks at a new device, such as udev, may hold it for a moment.
Result<void> remove_zram_device(const std::string& path) {
    for (int tries = 0;; ++tries) {
        const auto removed =
            write_text_file(std::string(kControl) + "/hot_remove", number_of(path));
        if (removed || tries == kRemoveTries) return removed;
        poll(nullptr, 0, kRemovePause_ms);
    }
}

Result<ZramSwap> ZramSwap::create(const std::string& note_directory, uint64_t bytes,
                                  Guardian* guardian) {
    ZramSwap swap;  // its destructor undoes what was done when a later step fails
    swap.guardian_ = guardian;
    swap.note_fd_ =
        above_standard(open(note_directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (swap.note_fd_ < 0 || flock(swap.note_fd_, LOCK_EX | LOCK_NB) != 0) {
        return fail_errno(status_of(errno), errno, "creating a file in %s", note_directory.c_str());
    }
    HANARE_TRY_ASSIGN(swap.path_, add_device());
    if (guardian != nullptr) guardian->watch(Undo::kZramDevice, swap.path_);
    HANARE_TRY(swap.remember(note_directory));
    HANARE_TRY(write_text_file(attribute(swap.path_, "disksize"), std::to_string(bytes)));
    const int device = open(swap.path_.c_str(), O_RDWR | O_CLOEXEC);
    if (device < 0) {
        return fail_errno(status_of(errno), errno, "opening %s", swap.path_.c_str());
    }
    const auto written = write_swap_header(device, bytes);
    close(device);
    HANARE_TRY(written);
    if (swapon(swap.path_.c_str(), SWAP_FLAG_PREFER | kHighestPriority) != 0) {
        return fail_errno(status_of(errno), errno, "turning on swap on %s", swap.path_.c_str());
    }
    swap.on_ = true;
    return swap;
}

// Writes the note, which is locked already, and gives it its name.
Result<void> ZramSwap::remember(const std::string& directory) {
    const std::string text = note_of(path_);
    if (write(note_fd_, text.data(), text.size()) < 0) {
        return fail_errno(status_of(errno), errno, "writing a file in %s", directory.c_str());
    }
    const std::string unnamed = "/proc/self/fd/" + std::to_string(note_fd_);
    const std::string note =
        directory + "/" + std::string(kPrefix) + std::to_string(getpid()) + std::string(kSuffix);
    if (linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, note.c_str(), AT_SYMLINK_FOLLOW) != 0) {
        return fail_errno(status_of(errno), errno, "creating %s", note.c_str());
    }
    note_ = note;
    if (guardian_ != nullptr) guardian_->watch(Undo::kFile, note_);
    return {};
}

ZramSwap::ZramSwap(ZramSwap&& other) noexcept
    : guardian_(other.guardian_),
      note_fd_(std::exchange(other.note_fd_, -1)),
      note_(std::exchange(other.note_, {})),
      on_(std::exchange(other.on_, false)),
      path_(std::exchange(other.path_, {})) {}

ZramSwap& ZramSwap::operator=(ZramSwap&& other) noexcept {
    std::swap(guardian_, other.guardian_);
    std::swap(note_fd_, other.note_fd_);
    std::swap(note_, other.note_);
    std::swap(on_, other.on_);
    std::swap(path_, other.path_);
    return *this;
}

ZramSwap::~ZramSwap() { (void)remove(); }

Result<uint64_t> ZramSwap::peak_bytes() const {
    HANARE_TRY_ASSIGN(const std::string text, read_text_file(attribute(path_, "mm_stat")));
    std::istringstream fields(text);
    uint64_t original, compressed, used, limit, peak;
    if (!(fields >> original >> compressed >> used >> limit >> peak)) {
        return fail(HANARE_STATUS_SYSTEM, "mm_stat of %s has an unknown form", path_.c_str());
    }
    return peak;
}

Result<void> ZramSwap::remove() {
    if (on_ && swapoff(path_.c_str()) != 0) {
        return fail_errno(status_of(errno), errno, "turning off swap on %s", path_.c_str());
    }
    on_ = false;
    if (!path_.empty()) {
        HANARE_TRY(remove_zram_device(path_));
        if (guardian_ != nullptr) guardian_->release(Undo::kZramDevice, path_);
    }
    path_.clear();
    if (!note_.empty()) {
        unlink(note_.c_str());
        if (guardian_ != nullptr) guardian_->release(Undo::kFile, note_);
    }
    note_.clear();
    if (note_fd_ >= 0) close(std::exchange(note_fd_, -1));
    return {};
}

int remove_stale_zram_swap(const std::string& directory) {
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
        if (const std::string path = device_of_note(fd); !path.empty()) {
            swapoff(path.c_str());  // EINVAL: it was never turned on
            if (remove_zram_device(path)) ++removed;
        }
        unlinkat(dirfd(listing), name.c_str(), 0);
        close(fd);
    }
    closedir(listing);
    return removed;
}

}  // namespace hanare::sys
