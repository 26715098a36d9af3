// SPDX-License-Identifier: Apache-2.0
#include "sys/platform.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/swap.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <sstream>
#include <string_view>

#include "base/units.hpp"
#include "sys/cgroup.hpp"
#include "sys/file.hpp"
#include "sys/signal.hpp"
#include "sys/text_file.hpp"
#include "sys/uring.hpp"
#include "sys/user_dispatch.hpp"

namespace hanare::sys {

namespace {

// Of linux/capability.h, whose names older headers lack.
constexpr unsigned kPtraceCapability = 19;

std::optional<uint64_t> setting(const char* path) {
    const auto text = read_text_file(path);
    if (!text) return std::nullopt;
    uint64_t value = 0;
    const auto parsed = std::from_chars(text->data(), text->data() + text->size(), value);
    if (parsed.ec != std::errc{}) return std::nullopt;
    return value;
}

// The value after "KEY:" in texts like /proc/self/status; empty when there is none.
std::string field(std::string_view text, std::string_view key) {
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with(key) || line.substr(key.size(), 1) != ":") continue;
        const size_t start = line.find_first_not_of(" \t", key.size() + 1);
        return start == std::string::npos ? "" : line.substr(start);
    }
    return {};
}

uint64_t number(const std::string& text, int base) {
    uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value, base);
    return value;
}

ResourceLimit resource_limit(decltype(RLIMIT_NOFILE) which) {
    rlimit limit = {};
    if (getrlimit(which, &limit) != 0) return {};
    const auto bytes = [](rlim_t value) { return value == RLIM_INFINITY ? UINT64_MAX : value; };
    return {bytes(limit.rlim_cur), bytes(limit.rlim_max)};
}

void probe_kernel(Platform& platform) {
    utsname name = {};
    if (uname(&name) == 0) {
        platform.kernel_release = name.release;
        // Stays 0.0 when the release is not numbered.
        std::sscanf(name.release, "%d.%d", &platform.kernel_major, &platform.kernel_minor);
    }
    platform.unprivileged_userfaultfd = setting("/proc/sys/vm/unprivileged_userfaultfd");
    platform.io_uring_disabled = setting("/proc/sys/kernel/io_uring_disabled");
    platform.max_map_count = setting("/proc/sys/vm/max_map_count");
    platform.ptrace_scope = setting("/proc/sys/kernel/yama/ptrace_scope");
    platform.overcommit_memory = setting("/proc/sys/vm/overcommit_memory");
    const auto huge = read_text_file("/sys/kernel/mm/transparent_hugepage/enabled");
    if (huge) {
        const size_t start = huge->find('[') + 1;
        const size_t end = huge->find(']', start);
        if (start != 0 && end != std::string::npos) {
            platform.huge_pages = huge->substr(start, end - start);
        }
    }
    const std::string meminfo = read_text_file("/proc/meminfo").value_or("");
    platform.swap_bytes = number(field(meminfo, "SwapTotal"), 10) * kKiB;
    platform.swap_free_bytes = number(field(meminfo, "SwapFree"), 10) * kKiB;
}

void probe_user(Platform& platform) {
    platform.user_id = geteuid();
    const std::string status = read_text_file("/proc/self/status").value_or("");
    // Without the right the kernel does not get as far as the name, which no file has.
    platform.may_swapon = swapon("", 0) != 0 && errno == ENOENT;
    platform.is_filtered = number(field(status, "Seccomp"), 10) == 2;
    platform.has_ptrace_capability =
        (number(field(status, "CapEff"), 16) >> kPtraceCapability & 1) != 0;
    // It is off, and stays so.
    platform.user_dispatch_errno = end_user_dispatch();
    platform.locked_bytes = resource_limit(RLIMIT_MEMLOCK);
    platform.open_files = resource_limit(RLIMIT_NOFILE);
    platform.file_bytes = resource_limit(RLIMIT_FSIZE);
    platform.address_bytes = resource_limit(RLIMIT_AS);

    sigset_t blocked;
    if (pthread_sigmask(SIG_BLOCK, nullptr, &blocked) == 0) {
        platform.sigbus_blocked = sigismember(&blocked, SIGBUS) == 1;
    }
    struct sigaction action = {};
    if (sigaction(SIGBUS, nullptr, &action) == 0) {
        platform.sigbus_ignored = action.sa_handler == SIG_IGN;
    }
}

void probe_cgroup(Platform& platform) {
    const SignalBlock block;  // an interruption would leave the cgroup behind
    auto created = MemoryCgroup::create("hanare-probe", kGiB);
    if (!created) {
        platform.cgroup_refusal = created.error().text;
        return;
    }
    platform.cgroup_version = created->version();
    if (const auto removed = created->remove(); !removed) {
        platform.cgroup_refusal = removed.error().text;
    }
}

// Values of statfs(2); the kernel's header lacks several.
std::string file_system_name(uint64_t magic) {
    switch (magic) {
        case 0xef53: return "ext4";
        case 0x58465342: return "xfs";
        case 0x9123683e: return "btrfs";
        case 0x2fc12fc1: return "zfs";
        case 0xf2f52010: return "f2fs";
        case 0x01021994: return "tmpfs";
        case 0x858458f6: return "ramfs";
        case 0x794c7630: return "overlay";
        case 0x6969: return "nfs";
        case 0xff534d42:
        case 0xfe534d42: return "smb";
        case 0x65735546: return "fuse";
        case 0x0bd00bd0: return "lustre";
        case 0x47504653: return "gpfs";
        case 0x01021997: return "9p";
        default: {
            char text[32];
            std::snprintf(text, sizeof text, "type %#llx", static_cast<unsigned long long>(magic));
            return text;
        }
    }
}

}  // namespace

Platform probe_platform() {
    Platform platform;
    probe_kernel(platform);
    platform.userfault = Userfault::probe();
    platform.uring_errno = Uring::probe();
    probe_user(platform);
    probe_cgroup(platform);
    return platform;
}

bool forbids_execution(const std::string& path) {
    struct statvfs system = {};
    return statvfs(path.c_str(), &system) == 0 && (system.f_flag & ST_NOEXEC) != 0;
}

namespace {

std::unexpected<Error> cannot_create_in(const std::string& directory, int error) {
    return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error, "cannot create a file in %s",
                      directory.c_str());
}

// Of a file or a directory there.
Result<DirectoryReport> report_of(const std::string& directory, const FileDescriptor& file) {
    FileSystem system;
    if (const int error = file_system_of(file.number(), system); error != 0) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error, "cannot examine %s",
                          directory.c_str());
    }
    DirectoryReport report;
    report.file_system = file_system_name(system.magic);
    report.in_memory = system.in_memory;
    report.room_known = system.room_known;
    report.free_bytes = system.free_bytes;
    return report;
}

// Of a file system that may refuse a file for no reason that can be asked for.
bool must_be_tried(uint32_t magic) {
    constexpr uint32_t kXfs = 0x58465342;
    return magic != EXT4_SUPER_MAGIC && magic != kXfs && magic != BTRFS_SUPER_MAGIC &&
           magic != TMPFS_MAGIC && magic != F2FS_SUPER_MAGIC;
}

Result<DirectoryReport> examine(const std::string& directory, FileDescriptor& file) {
    if (const int error = open_unnamed(directory, file); error != 0) {
        return cannot_create_in(directory, error);
    }
    return report_of(directory, file);
}

}  // namespace

Result<DirectoryReport> examine_directory(const std::string& directory) {
    FileDescriptor file(above_standard(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)));
    const bool is_allowed =
        file.is_open() && faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
    if (!is_allowed) return cannot_create_in(directory, errno);
    FileSystem system;
    if (file_system_of(file.number(), system) != 0 || must_be_tried(system.magic)) {
        return examine(directory, file);
    }
    if (system.no_more_files) return cannot_create_in(directory, ENOSPC);
    return report_of(directory, file);
}

Result<DirectoryReport> probe_directory(const std::string& directory) {
    FileDescriptor file;
    HANARE_TRY_ASSIGN(DirectoryReport report, examine(directory, file));
    report.direct_errno = bypass_page_cache(file.number());
    return report;
}

}  // namespace hanare::sys
