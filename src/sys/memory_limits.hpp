// SPDX-License-Identifier: Apache-2.0
//
// How much memory this process may count on, and who says so: the cgroup it is in and every one
// above (versions 1 and 2), the job's Slurm allocation, what the machine has to give away now.
// Any thread; the environment must not change meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace hanare::sys {

struct MemoryLimit {
    uint64_t bytes = 0;
    std::string origin;  // "cgroup limit /sys/fs/cgroup/job/memory.max", "MemAvailable"
};

// Where limits are read from; tests put other texts here.
struct MemoryLimitInputs {
    std::string mountinfo;  // text of /proc/self/mountinfo, or those lines that matter
    std::string cgroup;     // text of /proc/self/cgroup
    std::string meminfo;    // text of /proc/meminfo
    // Values of the Slurm variables of these names, empty when not set.
    std::string slurm_mem_per_node;
    std::string slurm_mem_per_cpu;
    std::string slurm_cpus_on_node;

    // What this process sees.  Texts that cannot be read are empty.
    static MemoryLimitInputs of_this_process();
};

// Every limit that there is.
std::vector<MemoryLimit> memory_limits(const MemoryLimitInputs& inputs);

// The most restrictive limit of this process.
Result<MemoryLimit> effective_memory_limit();

}  // namespace hanare::sys
