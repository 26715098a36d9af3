// SPDX-License-Identifier: Apache-2.0
//
// Cases of arguments_sizes_test.cpp: files, their names, mounts.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

#include "intercept/argument_cases.hpp"

namespace hanare::intercept::argument_cases {

namespace {

constexpr uint64_t kHere = static_cast<uint64_t>(AT_FDCWD);
constexpr const char* kRoot = "/";

// clang-format off
std::vector<Case> content_cases() {
    static Things& t = things();
    const iovec buffer = {t.scratch.data(), 8};
    return {
        {"read", SYS_read, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.zero), p, 100}; }},
        {"read_of_less", SYS_read, 1, Size::kAtMost,
         [](uint64_t p) { return Words{fd(t.file), p, 100}; },
         {}, [] { lseek(t.file, 4090, SEEK_SET); }},
        {"pread64", SYS_pread64, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.file), p, 100, 4050}; }},
        {"write", SYS_write, 1, Size::kAtMost,
         [](uint64_t p) { return Words{fd(t.zero), p, 100}; }},
        {"pwrite64", SYS_pwrite64, 1, Size::kAtMost,
         [](uint64_t p) { return Words{fd(t.file), p, 100, 0}; }},
        {"readv", SYS_readv, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.zero), p, 2}; }, bytes_of(buffer, buffer)},
        {"writev", SYS_writev, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.zero), p, 2}; }, bytes_of(buffer, buffer)},
        {"preadv2", SYS_preadv2, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.file), p, 2, 0, 0, 0}; }, bytes_of(buffer, buffer)},
        {"vmsplice", SYS_vmsplice, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.pipe_ends[1]), p, 1, 0}; },
         bytes_of(iovec{t.scratch.data(), 0})},
        {"copy_file_range_in", SYS_copy_file_range, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.file), p, fd(t.file), word_of(&t.scratch), 8}; },
         bytes_of(uint64_t{2048}), [] { memset(t.scratch.data(), 0, 8); }},
        {"sendfile", SYS_sendfile, 2, Size::kExact,
         [](uint64_t p) { return Words{fd(t.datagrams[1]), fd(t.file), p, 8}; },
         bytes_of(uint64_t{16}), [] {
             char drained[16];
             while (recv(t.datagrams[0], drained, sizeof drained, 0) > 0) {}
         }},
    };
}

std::vector<Case> file_cases() {
    static Things& t = things();
    struct stat root = {};
    stat(kRoot, &root);
    const uint64_t device = (root.st_dev & 0xff) | (root.st_dev >> 8 & 0xfff) << 8;
    return {
        {"stat", SYS_stat, 1, Size::kExact,
         [](uint64_t p) { return Words{word_of(kRoot), p}; }},
        {"lstat", SYS_lstat, 1, Size::kExact,
         [](uint64_t p) { return Words{word_of(kRoot), p}; }},
        {"fstat", SYS_fstat, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.zero), p}; }},
        {"newfstatat", SYS_newfstatat, 2, Size::kExact,
         [](uint64_t p) { return Words{kHere, word_of(kRoot), p}; }},
        {"statx", SYS_statx, 4, Size::kExact,
         [](uint64_t p) { return Words{kHere, word_of(kRoot), 0, 0xfff, p}; }},
        {"statfs", SYS_statfs, 1, Size::kExact,
         [](uint64_t p) { return Words{word_of(kRoot), p}; }},
        {"fstatfs", SYS_fstatfs, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.file), p}; }},
        {"ustat", SYS_ustat, 1, Size::kExact, [=](uint64_t p) { return Words{device, p}; }},
        {"getcwd", SYS_getcwd, 0, Size::kExact, [](uint64_t p) { return Words{p, 4096}; }},
        {"getdents64", SYS_getdents64, 1, Size::kAtMost,
         [](uint64_t p) { return Words{fd(t.directory), p, 4096}; },
         {}, [] { lseek(t.directory, 0, SEEK_SET); }},
        {"getdents", SYS_getdents, 1, Size::kAtMost,
         [](uint64_t p) { return Words{fd(t.directory), p, 4096}; },
         {}, [] { lseek(t.directory, 0, SEEK_SET); }},
        {"readlink", SYS_readlink, 1, Size::kExact,
         [](uint64_t p) { return Words{word_of("/proc/self/exe"), p, 300}; }},
        {"readlinkat", SYS_readlinkat, 2, Size::kExact,
         [](uint64_t p) { return Words{kHere, word_of("/proc/self/exe"), p, 3}; }},
        {"openat2", SYS_openat2, 2, Size::kExact,
         [](uint64_t p) { return Words{kHere, word_of("/no-such-file"), p, 24}; }, Bytes(24)},
        {"utimensat", SYS_utimensat, 2, Size::kExact,
         [](uint64_t p) { return Words{kHere, word_of("/no-such-file"), p, 0}; }, Bytes(32)},
        {"utimes", SYS_utimes, 1, Size::kExact,
         [](uint64_t p) { return Words{word_of("/no-such-file"), p}; }, Bytes(32)},
        {"utime", SYS_utime, 1, Size::kExact,
         [](uint64_t p) { return Words{word_of("/no-such-file"), p}; }, Bytes(16)},
        {"fsetxattr", SYS_fsetxattr, 2, Size::kExact,
         [](uint64_t p) { return Words{fd(t.file), word_of("trusted.hanare"), p, 5}; },
         Bytes(5)},
        {"name_to_handle_at", SYS_name_to_handle_at, 2, Size::kAtMost,
         [](uint64_t p) { return Words{kHere, word_of(kRoot), p, word_of(&t.scratch), 0}; },
         bytes_of(uint32_t{128}, uint32_t{0})},
        {"open_by_handle_at", SYS_open_by_handle_at, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.directory), p, 0}; },
         bytes_of(uint32_t{8}, uint32_t{1}, uint64_t{0})},
        {"fcntl_flock", SYS_fcntl, 2, Size::kExact,
         [](uint64_t p) { return Words{fd(t.file), F_GETLK, p}; }, Bytes(32)},
        {"ioctl_int", SYS_ioctl, 2, Size::kAtMost,
         [](uint64_t p) { return Words{fd(t.terminal), TIOCGPTN, p}; }},
        {"ioctl_without_size", SYS_ioctl, 2, Size::kAtMost,
         [](uint64_t p) { return Words{fd(t.terminal), TCGETS, p}; }},
        {"cachestat_range", 451, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.file), p, word_of(&t.scratch), 0}; }, Bytes(16)},
        {"cachestat", 451, 2, Size::kExact,
         [](uint64_t p) { return Words{fd(t.file), word_of(&t.scratch), p, 0}; }},
        {"file_getattr", 468, 2, Size::kExact,
         [](uint64_t p) { return Words{kHere, word_of(kRoot), p, 24, 0}; }},
    };
}

std::vector<Case> mount_cases() {
    static Things& t = things();
    return {
        {"statmount_request", 457, 0, Size::kExact,
         [](uint64_t p) { return Words{p, word_of(&t.scratch), 4096, 0}; },
         bytes_of(uint32_t{24}, uint32_t{0}, uint64_t{1} << 40, uint64_t{0})},
        {"listmount", 458, 1, Size::kExact,
         [](uint64_t p) {
             static const uint64_t request[] = {24, UINT64_MAX, 0};  // LSMT_ROOT
             return Words{word_of(request), p, 3, 0};
         }},
    };
}

// clang-format on

}  // namespace

std::vector<Case> cases_of_files() {
    return joined({content_cases(), file_cases(), mount_cases()});
}

}  // namespace hanare::intercept::argument_cases
