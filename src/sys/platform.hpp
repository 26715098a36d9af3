// SPDX-License-Identifier: Apache-2.0
//
// What this kernel, this user and this container offer to Hanare, found by trying rather than by
// version numbers.  Probing leaves nothing behind.  For `hanare doctor` and the demo, not for the
// fault path; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "sys/uffd.hpp"

namespace hanare::sys {

struct ResourceLimit {
    uint64_t soft = 0;  // UINT64_MAX: unlimited
    uint64_t hard = 0;
};

struct Platform {
    std::string kernel_release;
    int kernel_major = 0;
    int kernel_minor = 0;

    Userfault::Support userfault;
    int uring_errno = 0;  // 0: io_uring works

    // Kernel settings; nothing where the kernel has no such setting.
    std::optional<uint64_t> unprivileged_userfaultfd;  // vm.
    std::optional<uint64_t> io_uring_disabled;         // kernel.
    std::optional<uint64_t> max_map_count;             // vm.
    std::optional<uint64_t> overcommit_memory;         // vm.
    std::optional<uint64_t> ptrace_scope;              // kernel.yama.
    std::string huge_pages;                            // "madvise", or empty without THP

    uint64_t swap_bytes = 0;
    uint64_t swap_free_bytes = 0;

    ResourceLimit locked_bytes;   // RLIMIT_MEMLOCK
    ResourceLimit open_files;     // RLIMIT_NOFILE
    ResourceLimit file_bytes;     // RLIMIT_FSIZE
    ResourceLimit address_bytes;  // RLIMIT_AS

    uint32_t user_id = 0;
    bool may_swapon = false;
    bool has_ptrace_capability = false;
    int user_dispatch_errno = 0;  // 0: system calls can be made to raise SIGSYS
    bool is_filtered = false;     // a seccomp filter is at work
    std::string cgroup_refusal;   // why no memory cgroup can be created; empty when it can
    int cgroup_version = 0;       // of the one that could be created

    bool sigbus_blocked = false;  // inherited by this thread
    bool sigbus_ignored = false;
};

Platform probe_platform();

// Whether programs and libraries there cannot be used, since the file system is mounted so.
bool forbids_execution(const std::string& path);

// What a directory offers to a file store.
struct DirectoryReport {
    std::string file_system;  // "ext4"
    bool in_memory = false;   // tmpfs or ramfs
    bool room_known = false;
    uint64_t free_bytes = 0;
    int direct_errno = 0;  // 0: O_DIRECT works; of probe_directory() only
};

// Whether a file can be created there, as far as permissions and room tell; on file systems that
// may refuse for other reasons one is created.  STORE_UNAVAILABLE says why not.
Result<DirectoryReport> examine_directory(const std::string& directory);
// The same, and writes a page past the page cache, which takes milliseconds.
Result<DirectoryReport> probe_directory(const std::string& directory);

}  // namespace hanare::sys
