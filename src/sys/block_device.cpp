// SPDX-License-Identifier: Apache-2.0
#include "sys/block_device.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

#include "sys/text_file.hpp"

namespace hanare::sys {
namespace {

constexpr uint64_t kSectorBytes = 512;  // of /sys/block/*/stat, whatever the device's

std::string name_of(dev_t device) {
    return std::to_string(major(device)) + ":" + std::to_string(minor(device));
}

bool has_counters(const std::string& device) {
    return access(("/sys/dev/block/" + device + "/stat").c_str(), R_OK) == 0;
}

// File systems such as btrfs show an anonymous device number; the mount table names the real one.
Result<std::string> device_from_mounts(const std::string& anonymous, const std::string& path) {
    HANARE_TRY_ASSIGN(const std::string mountinfo, read_text_file("/proc/self/mountinfo"));
    std::istringstream lines(mountinfo);
    for (std::string line; std::getline(lines, line);) {
        const size_t dash = line.find(" - ");
        if (dash == std::string::npos) continue;
        std::istringstream head(line);
        std::istringstream tail(line.substr(dash + 3));
        std::string id, parent, device, type, source;
        if (!(head >> id >> parent >> device) || !(tail >> type >> source)) continue;
        struct stat status = {};
        if (device == anonymous && stat(source.c_str(), &status) == 0 && S_ISBLK(status.st_mode) &&
            has_counters(name_of(status.st_rdev))) {
            return name_of(status.st_rdev);
        }
    }
    return fail(HANARE_STATUS_NOT_FOUND, "no block device below %s", path.c_str());
}

}  // namespace

Result<std::string> block_device_of(const std::string& path) {
    struct stat status = {};
    if (stat(path.c_str(), &status) != 0) {
        return fail_errno(HANARE_STATUS_NOT_FOUND, errno, "%s", path.c_str());
    }
    const std::string device = name_of(status.st_dev);
    if (has_counters(device)) return device;
    return device_from_mounts(device, path);
}

Result<DeviceBytes> block_device_bytes(const std::string& device) {
    HANARE_TRY_ASSIGN(const std::string text, read_text_file("/sys/dev/block/" + device + "/stat"));
    std::istringstream fields(text);
    uint64_t reads, reads_merged, sectors_read, read_ms, writes, writes_merged, sectors_written;
    if (!(fields >> reads >> reads_merged >> sectors_read >> read_ms >> writes >> writes_merged >>
          sectors_written)) {
        return fail(HANARE_STATUS_SYSTEM, "/sys/dev/block/%s/stat has an unknown form",
                    device.c_str());
    }
    return DeviceBytes{sectors_read * kSectorBytes, sectors_written * kSectorBytes};
}

Result<uint64_t> free_disk_bytes(const std::string& directory) {
    struct statvfs status = {};
    if (statvfs(directory.c_str(), &status) != 0) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, errno, "%s", directory.c_str());
    }
    return uint64_t{status.f_bavail} * status.f_frsize;
}

Result<void> sync_file_system(const std::string& directory) {
    const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, errno, "%s", directory.c_str());
    }
    const int error = syncfs(fd) != 0 ? errno : 0;
    close(fd);
    if (error != 0)
        return fail_errno(HANARE_STATUS_SYSTEM, error, "syncfs of %s", directory.c_str());
    return {};
}

}  // namespace hanare::sys
