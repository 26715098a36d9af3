// SPDX-License-Identifier: Apache-2.0
#include "sys/cgroup.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <utility>

#include "sys/file.hpp"
#include "sys/text_file.hpp"

namespace hanare::sys {
namespace {

constexpr int kRemoveTries = 100;
constexpr int kRemovePause_ms = 10;

struct Mount {
    std::string root;
    std::string point;
};

// The parts of a text between any of these characters; several in a row part it once.
std::vector<std::string_view> parts_of(std::string_view text, std::string_view between) {
    std::vector<std::string_view> parts;
    for (size_t start = 0; (start = text.find_first_not_of(between, start)) != text.npos;) {
        const size_t end = std::min(text.find_first_of(between, start), text.size());
        parts.push_back(text.substr(start, end - start));
        start = end;
    }
    return parts;
}

bool has_part(std::string_view list, std::string_view wanted, std::string_view between = ",") {
    const std::vector<std::string_view> parts = parts_of(list, between);
    return std::find(parts.begin(), parts.end(), wanted) != parts.end();
}

// The mounts of file system `type` whose super options contain `option` (empty: any).
std::vector<Mount> mounts_of(std::string_view mountinfo, std::string_view type,
                             std::string_view option) {
    constexpr size_t kRoot = 3, kPoint = 4;
    constexpr size_t kType = 0, kOptions = 2;  // behind the dash
    std::vector<Mount> mounts;
    for (const std::string_view line : parts_of(mountinfo, "\n")) {
        const size_t dash = line.find(" - ");
        if (dash == line.npos) continue;
        const std::vector<std::string_view> head = parts_of(line.substr(0, dash), " ");
        const std::vector<std::string_view> tail = parts_of(line.substr(dash + 3), " ");
        if (head.size() <= kPoint || tail.size() <= kOptions || tail[kType] != type) continue;
        if (!option.empty() && !has_part(tail[kOptions], option)) continue;
        mounts.push_back({std::string(head[kRoot]), std::string(head[kPoint])});
    }
    return mounts;
}

// Our cgroup's path in the hierarchy with this controller; version 2 has the empty controller list.
std::optional<std::string> own_path(std::string_view cgroup, std::string_view controller) {
    for (const std::string_view line : parts_of(cgroup, "\n")) {
        const size_t first = line.find(':');
        const size_t second = first == line.npos ? first : line.find(':', first + 1);
        if (second == line.npos) continue;
        const std::string_view list = line.substr(first + 1, second - first - 1);
        const bool match = controller.empty() ? list.empty() : has_part(list, controller);
        if (match) return std::string(line.substr(second + 1));
    }
    return std::nullopt;
}

// `path` as seen below a mount that shows only the subtree `mount.root` of the hierarchy.
std::string directory_below(const Mount& mount, const std::string& path) {
    std::string rest = path;
    if (mount.root != "/") {
        const bool inside = path == mount.root || path.starts_with(mount.root + "/");
        rest = inside ? path.substr(mount.root.size()) : "";
    }
    while (rest.ends_with('/')) rest.pop_back();
    return mount.point + rest;
}

// Opens and locks the directory of a cgroup; -1 when someone else holds it.
int lock_directory(const std::string& directory) {
    const int fd = above_standard(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0) return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
    close(fd);
    return -1;
}

// Removes cgroups of this prefix that no living process owns.
void remove_leftovers(const std::string& parent, std::string_view prefix) {
    DIR* listing = opendir(parent.c_str());
    if (listing == nullptr) return;
    std::vector<std::string> names;
    while (const dirent* entry = readdir(listing)) {
        const std::string_view name = entry->d_name;
        if (name.starts_with(prefix) && name.substr(prefix.size()).starts_with("-")) {
            names.emplace_back(name);
        }
    }
    closedir(listing);
    for (const std::string& name : names) {
        const std::string directory = parent + "/" + name;
        const int fd = lock_directory(directory);
        if (fd < 0) continue;
        rmdir(directory.c_str());  // fails, as it should, while a process is inside
        close(fd);
    }
}

hanare_status status_of(int error) {
    return error == EACCES || error == EPERM || error == EROFS ? HANARE_STATUS_PERMISSION
                                                               : HANARE_STATUS_NOT_SUPPORTED;
}

std::string control_file(const std::string& parent) { return parent + "/cgroup.subtree_control"; }

// Version 2: makes `parent` give its children the memory controller.  True when this changed it.
Result<bool> enable_memory_controller(const std::string& parent) {
    const std::string control = control_file(parent);
    HANARE_TRY_ASSIGN(const std::string enabled, read_text_file(control));
    if (has_part(enabled, "memory", " \n")) return false;
    HANARE_TRY_ASSIGN(const std::string offered, read_text_file(parent + "/cgroup.controllers"));
    if (!has_part(offered, "memory", " \n")) {
        return fail(HANARE_STATUS_NOT_SUPPORTED, "%s offers no memory controller", parent.c_str());
    }
    HANARE_TRY(write_text_file(control, "+memory"));
    return true;
}

}  // namespace

std::vector<CgroupPlace> memory_cgroup_places(std::string_view mountinfo, std::string_view cgroup) {
    std::vector<CgroupPlace> places;
    if (const auto path = own_path(cgroup, "memory")) {
        for (const Mount& mount : mounts_of(mountinfo, "cgroup", "memory")) {
            places.push_back({1, directory_below(mount, *path)});
        }
        return places;  // the controller is bound to one hierarchy
    }
    if (const auto path = own_path(cgroup, "")) {
        for (const Mount& mount : mounts_of(mountinfo, "cgroup2", "")) {
            std::string directory = directory_below(mount, *path);
            while (true) {
                places.push_back({2, directory});
                if (directory.size() <= mount.point.size()) break;
                directory.resize(std::max(directory.rfind('/'), mount.point.size()));
            }
        }
    }
    return places;
}

std::vector<CgroupPlace> memory_cgroup_places() {
    const auto mountinfo = read_text_file("/proc/self/mountinfo");
    const auto cgroup = read_text_file("/proc/self/cgroup");
    if (!mountinfo || !cgroup) return {};
    return memory_cgroup_places(*mountinfo, *cgroup);
}

std::string memory_cgroup_mounts(std::string_view cgroup) {
    struct Usual {
        const char* controller;
        const char* point;
        long magic;
        const char* mount;
    };
    constexpr Usual kUsual[] = {{"memory", "/sys/fs/cgroup/memory", CGROUP_SUPER_MAGIC,
                                 "0 0 0:0 / /sys/fs/cgroup/memory - cgroup cgroup memory"},
                                {"", "/sys/fs/cgroup", CGROUP2_SUPER_MAGIC,
                                 "0 0 0:0 / /sys/fs/cgroup - cgroup2 cgroup2 rw"}};
    for (const Usual& usual : kUsual) {
        const auto path = own_path(cgroup, usual.controller);
        if (!path) continue;
        // A mount that shows a part of the hierarchy only does not have that path.
        struct statfs system = {};
        const std::string own = usual.point + *path + "/cgroup.procs";
        if (statfs(own.c_str(), &system) == 0 && system.f_type == usual.magic) return usual.mount;
        break;
    }
    return read_text_file("/proc/self/mountinfo").value_or("");
}

Result<MemoryCgroup> MemoryCgroup::create(std::string_view prefix, uint64_t limit_bytes,
                                          Guardian* guardian) {
    std::optional<Error> first;
    for (const CgroupPlace& place : memory_cgroup_places()) {
        auto created = create_in(place, prefix, limit_bytes, guardian);
        if (created) return created;
        if (!first) first = created.error();
    }
    if (first) return std::unexpected(*first);
    return fail(HANARE_STATUS_NOT_SUPPORTED, "no cgroup hierarchy with the memory controller");
}

Result<MemoryCgroup> MemoryCgroup::create_in(const CgroupPlace& place, std::string_view prefix,
                                             uint64_t limit_bytes, Guardian* guardian) {
    remove_leftovers(place.directory, prefix);
    MemoryCgroup group;  // its destructor undoes what was done when a later step fails
    group.version_ = place.version;
    group.guardian_ = guardian;
    const std::string directory =
        place.directory + "/" + std::string(prefix) + "-" + std::to_string(getpid());
    group.watch(Undo::kCgroup, directory);
    if (mkdir(directory.c_str(), 0755) != 0) {
        const int error = errno;
        group.release(Undo::kCgroup, directory);
        return fail_errno(status_of(error), error, "creating the cgroup %s", directory.c_str());
    }
    group.directory_ = directory;
    group.lock_fd_ = lock_directory(directory);
    if (place.version == 2) {
        HANARE_TRY_ASSIGN(group.enabled_controller_, enable_memory_controller(place.directory));
        if (group.enabled_controller_) {
            group.watch(Undo::kController, control_file(place.directory));
        }
    }
    HANARE_TRY(
        write_text_file(directory + (place.version == 1 ? "/memory.limit_in_bytes" : "/memory.max"),
                        std::to_string(limit_bytes)));
    if (access((directory + "/cgroup.procs").c_str(), W_OK) != 0) {
        return fail_errno(status_of(errno), errno, "entering the cgroup %s", directory.c_str());
    }
    return group;
}

MemoryCgroup::MemoryCgroup(MemoryCgroup&& other) noexcept
    : version_(other.version_),
      lock_fd_(std::exchange(other.lock_fd_, -1)),
      guardian_(other.guardian_),
      enabled_controller_(std::exchange(other.enabled_controller_, false)),
      directory_(std::exchange(other.directory_, {})) {}

MemoryCgroup& MemoryCgroup::operator=(MemoryCgroup&& other) noexcept {
    std::swap(version_, other.version_);
    std::swap(lock_fd_, other.lock_fd_);
    std::swap(guardian_, other.guardian_);
    std::swap(enabled_controller_, other.enabled_controller_);
    std::swap(directory_, other.directory_);
    return *this;
}

MemoryCgroup::~MemoryCgroup() { (void)remove(); }

Result<uint64_t> MemoryCgroup::peak_bytes() const {
    const char* file = version_ == 1 ? "/memory.max_usage_in_bytes" : "/memory.peak";
    HANARE_TRY_ASSIGN(const std::string text, read_text_file(directory_ + file));
    return std::strtoull(text.c_str(), nullptr, 10);
}

Result<uint64_t> MemoryCgroup::oom_kills() const {
    const std::string path =
        directory_ + (version_ == 1 ? "/memory.oom_control" : "/memory.events");
    HANARE_TRY_ASSIGN(const std::string text, read_text_file(path));
    std::istringstream lines(text);
    std::string name;
    for (uint64_t count = 0; lines >> name >> count;) {
        if (name == "oom_kill") return count;
    }
    return fail(HANARE_STATUS_NOT_SUPPORTED, "%s does not count", path.c_str());
}

Result<void> MemoryCgroup::keep_out_of_swap() {
    return write_text_file(directory_ + (version_ == 1 ? "/memory.swappiness" : "/memory.swap.max"),
                           "0");
}

void MemoryCgroup::reclaim() {
    if (version_ == 1) {
        (void)write_text_file(directory_ + "/memory.force_empty", "0");
        return;
    }
    if (const auto used = read_text_file(directory_ + "/memory.current")) {
        (void)write_text_file(directory_ + "/memory.reclaim", *used);  // kernel 5.19
    }
}

Result<void> MemoryCgroup::remove() {
    if (directory_.empty()) return {};
    int tries = 0;
    // A process that was waited for may still be on its way out of the cgroup for a moment.
    while (rmdir(directory_.c_str()) != 0 && errno != ENOENT) {
        const int error = errno;
        if (error != EBUSY || ++tries == kRemoveTries) {
            return fail_errno(error == EBUSY ? HANARE_STATUS_BUSY : HANARE_STATUS_SYSTEM, error,
                              "removing the cgroup %s", directory_.c_str());
        }
        poll(nullptr, 0, kRemovePause_ms);
    }
    release(Undo::kCgroup, directory_);
    if (enabled_controller_) {
        const std::string control = control_file(directory_.substr(0, directory_.rfind('/')));
        (void)write_text_file(control, "-memory");
        release(Undo::kController, control);
        enabled_controller_ = false;
    }
    if (lock_fd_ >= 0) close(std::exchange(lock_fd_, -1));
    directory_.clear();
    return {};
}

void MemoryCgroup::watch(Undo kind, const std::string& path) noexcept {
    if (guardian_ != nullptr) guardian_->watch(kind, path);
}

void MemoryCgroup::release(Undo kind, const std::string& path) noexcept {
    if (guardian_ != nullptr) guardian_->release(kind, path);
}

Result<void> enter_cgroup(const std::string& directory) {
    return write_text_file(directory + "/cgroup.procs", "0");
}

}  // namespace hanare::sys
