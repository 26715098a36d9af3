// SPDX-License-Identifier: Apache-2.0
//
// A memory cgroup of our own, versions 1 and 2: created below the cgroup we are in (version 2: or
// beside it, because a version-2 cgroup with processes cannot have limited children), limited,
// entered by a process of ours, removed again.  A cgroup directory is locked (flock) by its owner,
// so that one left behind by a killed process can be told from one in use.
// Objects are used by one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/guardian.hpp"

namespace hanare::sys {

// A directory in which a memory cgroup may be created.
struct CgroupPlace {
    int version = 0;  // 1 or 2
    std::string directory;
};

// Where to try, best first, from the texts of /proc/self/mountinfo and /proc/self/cgroup.
std::vector<CgroupPlace> memory_cgroup_places(std::string_view mountinfo, std::string_view cgroup);
std::vector<CgroupPlace> memory_cgroup_places();

// As much of /proc/self/mountinfo as memory_cgroup_places() needs, for this process: where the
// hierarchy is where it usually is, that alone, since the kernel takes long to tell of all mounts.
std::string memory_cgroup_mounts(std::string_view cgroup);

class MemoryCgroup {
public:
    // Creates PREFIX-PID with the limit in the first place that allows it, after removing unused
    // leftovers of the same prefix there.  PERMISSION or NOT_SUPPORTED say why none does.
    // The guardian, if there is one, outlives the object and removes the cgroup if we cannot.
    static Result<MemoryCgroup> create(std::string_view prefix, uint64_t limit_bytes,
                                       Guardian* guardian = nullptr);
    static Result<MemoryCgroup> create_in(const CgroupPlace& place, std::string_view prefix,
                                          uint64_t limit_bytes, Guardian* guardian = nullptr);

    MemoryCgroup(MemoryCgroup&& other) noexcept;
    MemoryCgroup& operator=(MemoryCgroup&& other) noexcept;
    ~MemoryCgroup();

    const std::string& directory() const { return directory_; }
    int version() const { return version_; }
    // Highest use so far, page cache included.
    Result<uint64_t> peak_bytes() const;
    // Processes in it that the kernel has ended for want of memory.
    Result<uint64_t> oom_kills() const;
    // Its processes' memory is never swapped, whatever swap the machine has.
    Result<void> keep_out_of_swap();
    // Asks the kernel to take what memory it can from the cgroup; what it gets is not reported.
    void reclaim();
    // Removes the cgroup; its processes must have ended.  BUSY otherwise.
    Result<void> remove();

private:
    MemoryCgroup() = default;

    void watch(Undo kind, const std::string& path) noexcept;
    void release(Undo kind, const std::string& path) noexcept;

    int version_ = 0;
    int lock_fd_ = -1;
    Guardian* guardian_ = nullptr;
    bool enabled_controller_ = false;  // version 2: we wrote "+memory" into the parent
    std::string directory_;
};

// Moves the calling process into the cgroup at `directory`.
Result<void> enter_cgroup(const std::string& directory);

}  // namespace hanare::sys
