// SPDX-License-Identifier: Apache-2.0
#include "sys/memory_limits.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "base/units.hpp"
#include "sys/cgroup.hpp"
#include "sys/text_file.hpp"

namespace hanare::sys {

namespace {

// Kernels write "no limit" in version 1 as the largest multiple of the page size.
constexpr uint64_t kUnlimitedBytes = uint64_t{1} << 60;

// The number that `text` begins with, after blanks.
std::optional<uint64_t> leading_number(std::string_view text) {
    const size_t start = text.find_first_not_of(" \t");
    if (start == std::string_view::npos) return std::nullopt;
    uint64_t value = 0;
    const auto parsed = std::from_chars(text.data() + start, text.data() + text.size(), value);
    if (parsed.ec != std::errc{}) return std::nullopt;
    return value;
}

// The same for a variable of another program: a number and nothing else.
std::optional<uint64_t> whole_number(const std::string& text) {
    const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
    return is_number ? leading_number(text) : std::nullopt;
}

std::string text_or_empty(const std::string& path) { return read_text_file(path).value_or(""); }

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : "";
}

// False where there is no such file.
bool add_file(std::vector<MemoryLimit>& limits, const std::string& path) {
    const auto text = read_text_file(path);
    if (!text) return false;
    const std::optional<uint64_t> bytes = leading_number(*text);  // "max" is none
    if (bytes && *bytes < kUnlimitedBytes) limits.push_back({*bytes, "cgroup limit " + path});
    return true;
}

// From our cgroup up to the root of what the mount shows; each level limits those below.  A level
// without the controller has no file but may stand below one that has.
void add_cgroups(std::vector<MemoryLimit>& limits, const MemoryLimitInputs& inputs) {
    const std::vector<CgroupPlace> places = memory_cgroup_places(inputs.mountinfo, inputs.cgroup);
    if (places.empty()) return;
    std::string directory = places.front().directory;
    for (bool is_cgroup = true; is_cgroup && !directory.empty();) {
        if (places.front().version == 1) {
            is_cgroup = add_file(limits, directory + "/memory.limit_in_bytes");
        } else if (add_file(limits, directory + "/memory.max")) {
            add_file(limits, directory + "/memory.high");
        } else {
            is_cgroup = access((directory + "/cgroup.procs").c_str(), F_OK) == 0;
        }
        directory.resize(directory.find_last_of('/'));
    }
}

// Slurm counts in MiB; 0 per node means the whole machine.
void add_slurm(std::vector<MemoryLimit>& limits, const MemoryLimitInputs& inputs) {
    constexpr uint64_t kMostMiB = kUnlimitedBytes / kMiB;
    const auto per_node = whole_number(inputs.slurm_mem_per_node);
    if (per_node && *per_node > 0 && *per_node < kMostMiB) {
        limits.push_back({*per_node * kMiB, "SLURM_MEM_PER_NODE"});
    }
    const auto per_cpu = whole_number(inputs.slurm_mem_per_cpu);
    const auto cpus = whole_number(inputs.slurm_cpus_on_node);
    if (per_cpu && cpus && *per_cpu > 0 && *cpus > 0 && *per_cpu < kMostMiB / *cpus) {
        limits.push_back({*per_cpu * *cpus * kMiB, "SLURM_MEM_PER_CPU * SLURM_CPUS_ON_NODE"});
    }
}

void add_machine(std::vector<MemoryLimit>& limits, const MemoryLimitInputs& inputs) {
    constexpr std::string_view kKey = "MemAvailable:";
    const std::string_view meminfo = inputs.meminfo;
    const size_t at = meminfo.find(kKey);
    if (at != std::string_view::npos) {
        if (const auto kib = leading_number(meminfo.substr(at + kKey.size()))) {
            limits.push_back({*kib * kKiB, "MemAvailable"});
            return;
        }
    }
    const long pages = sysconf(_SC_PHYS_PAGES);
    if (pages > 0)
        limits.push_back({static_cast<uint64_t>(pages) * kOsPageBytes, "physical memory"});
}

}  // namespace

MemoryLimitInputs MemoryLimitInputs::of_this_process() {
    std::string cgroup = text_or_empty("/proc/self/cgroup");
    std::string mounts = memory_cgroup_mounts(cgroup);
    return {std::move(mounts),
            std::move(cgroup),
            text_or_empty("/proc/meminfo"),
            variable("SLURM_MEM_PER_NODE"),
            variable("SLURM_MEM_PER_CPU"),
            variable("SLURM_CPUS_ON_NODE")};
}

std::vector<MemoryLimit> memory_limits(const MemoryLimitInputs& inputs) {
    std::vector<MemoryLimit> limits;
    add_cgroups(limits, inputs);
    add_slurm(limits, inputs);
    add_machine(limits, inputs);
    return limits;
}

Result<MemoryLimit> effective_memory_limit() {
    const std::vector<MemoryLimit> limits = memory_limits(MemoryLimitInputs::of_this_process());
    const auto least = std::min_element(
        limits.begin(), limits.end(),
        [](const MemoryLimit& a, const MemoryLimit& b) { return a.bytes < b.bytes; });
    if (least == limits.end()) {
        return fail(HANARE_STATUS_SYSTEM, "cannot find out how much memory this machine has");
    }
    return *least;
}

}  // namespace hanare::sys
