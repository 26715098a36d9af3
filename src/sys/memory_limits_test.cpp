// SPDX-License-Identifier: Apache-2.0
//
// The reading of limits is tested on trees of real files laid out as the kernel lays them out,
// because one machine has one cgroup version; then on a real cgroup where we may create one.
#include "sys/memory_limits.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "sys/cgroup.hpp"
#include "sys/test_support.hpp"

namespace hanare::sys {
namespace {

using testing::Leftovers;
using testing::TemporaryDirectory;

// Files and directories that vanish, also when the test is interrupted.
class Tree {
public:
    ~Tree() {
        for (auto slot = slots_.rbegin(); slot != slots_.rend(); ++slot) Leftovers::remove(*slot);
    }
    std::string root() const { return directory_.path(); }
    // A cgroup directory as the kernel makes it.
    void add_cgroup(const std::string& name) {
        const std::string path = root() + name;
        EXPECT_EQ(mkdir(path.c_str(), 0700), 0) << path;
        slots_.push_back(Leftovers::add(path));
        add_file(name + "/cgroup.procs", "");
    }
    void add_file(const std::string& name, const std::string& text) {
        const std::string path = root() + name;
        slots_.push_back(Leftovers::add(path));
        std::ofstream(path) << text;
    }

private:
    TemporaryDirectory directory_;
    std::vector<size_t> slots_;
};

constexpr const char* kMeminfo =
    "MemTotal:       16000000 kB\nMemFree:         1000 kB\nMemAvailable:    8388608 kB\n";

MemoryLimit least(const std::vector<MemoryLimit>& limits) {
    return *std::min_element(
        limits.begin(), limits.end(),
        [](const MemoryLimit& a, const MemoryLimit& b) { return a.bytes < b.bytes; });
}

MemoryLimitInputs inputs_of(const std::string& mountinfo, const std::string& cgroup) {
    MemoryLimitInputs inputs;
    inputs.mountinfo = mountinfo;
    inputs.cgroup = cgroup;
    inputs.meminfo = kMeminfo;
    return inputs;
}

std::string version2_mount(const Tree& tree, const std::string& root = "/") {
    return "29 22 0:26 " + root + " " + tree.root() +
           "/cg rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
}

TEST(MemoryLimits, Version2TakesTheLeastOfAllLevels) {
    Tree tree;
    tree.add_cgroup("/cg");
    tree.add_cgroup("/cg/user.slice");
    tree.add_file("/cg/user.slice/memory.max", "1073741824\n");
    tree.add_file("/cg/user.slice/memory.high", "max\n");
    tree.add_cgroup("/cg/user.slice/job");
    tree.add_file("/cg/user.slice/job/memory.max", "2147483648\n");
    const MemoryLimitInputs inputs = inputs_of(version2_mount(tree), "0::/user.slice/job\n");
    const std::vector<MemoryLimit> limits = memory_limits(inputs);
    ASSERT_EQ(limits.size(), 3u);
    EXPECT_EQ(least(limits).bytes, kGiB);
    EXPECT_EQ(least(limits).origin, "cgroup limit " + tree.root() + "/cg/user.slice/memory.max");
}

TEST(MemoryLimits, Version2HighCounts) {
    Tree tree;
    tree.add_cgroup("/cg");
    tree.add_cgroup("/cg/a");
    tree.add_file("/cg/a/memory.max", "max\n");
    tree.add_file("/cg/a/memory.high", "536870912\n");
    // A level without the memory controller.
    tree.add_cgroup("/cg/a/b");
    const MemoryLimitInputs inputs = inputs_of(version2_mount(tree), "0::/a/b\n");
    EXPECT_EQ(least(memory_limits(inputs)).bytes, 512 * kMiB);
}

// A container that sees its own cgroup as the mount but is named by the host's path.
TEST(MemoryLimits, Version2BelowTheMountedSubtree) {
    Tree tree;
    tree.add_cgroup("/cg");
    tree.add_file("/cg/memory.max", "268435456\n");
    const MemoryLimitInputs inputs =
        inputs_of(version2_mount(tree, "/docker/abc"), "0::/docker/abc\n");
    EXPECT_EQ(least(memory_limits(inputs)).bytes, 256 * kMiB);
}

TEST(MemoryLimits, Version1TakesTheLeastOfAllLevels) {
    Tree tree;
    tree.add_cgroup("/cg");
    tree.add_file("/cg/memory.limit_in_bytes", "9223372036854771712\n");
    tree.add_cgroup("/cg/slurm");
    tree.add_file("/cg/slurm/memory.limit_in_bytes", "1073741824\n");
    tree.add_cgroup("/cg/slurm/job_1");
    tree.add_file("/cg/slurm/job_1/memory.limit_in_bytes", "9223372036854771712\n");
    const MemoryLimitInputs inputs =
        inputs_of("36 29 0:32 / " + tree.root() + "/cg rw - cgroup cgroup rw,memory\n",
                  "5:cpu,cpuacct:/\n4:memory:/slurm/job_1\n0::/\n");
    const std::vector<MemoryLimit> limits = memory_limits(inputs);
    ASSERT_EQ(limits.size(), 2u);  // "unlimited" is none
    EXPECT_EQ(least(limits).bytes, kGiB);
}

TEST(MemoryLimits, SlurmCountsInMebibytes) {
    MemoryLimitInputs inputs = inputs_of("", "");
    inputs.slurm_mem_per_node = "4096";
    EXPECT_EQ(least(memory_limits(inputs)).bytes, 4 * kGiB);
    EXPECT_EQ(least(memory_limits(inputs)).origin, "SLURM_MEM_PER_NODE");
    inputs.slurm_mem_per_node = "";
    inputs.slurm_mem_per_cpu = "512";
    inputs.slurm_cpus_on_node = "4";
    EXPECT_EQ(least(memory_limits(inputs)).bytes, 2 * kGiB);
}

TEST(MemoryLimits, OtherProgramsNonsenseIsNoLimit) {
    for (const char* text :
         {"0", "", "4G", "-1", "lots", "99999999999999999999", "18446744073709551615"}) {
        MemoryLimitInputs inputs = inputs_of("garbage\n\n - \n", "x\n::\n4:memory:\n0::/../..\n");
        inputs.slurm_mem_per_node = text;
        inputs.slurm_mem_per_cpu = text;
        inputs.slurm_cpus_on_node = "2";
        const std::vector<MemoryLimit> limits = memory_limits(inputs);
        ASSERT_EQ(limits.size(), 1u) << text;
        EXPECT_EQ(limits[0].origin, "MemAvailable");
        EXPECT_EQ(limits[0].bytes, 8 * kGiB);
    }
}

TEST(MemoryLimits, WithoutMeminfoPhysicalMemoryCounts) {
    const std::vector<MemoryLimit> limits = memory_limits(MemoryLimitInputs());
    ASSERT_EQ(limits.size(), 1u);
    EXPECT_EQ(limits[0].origin, "physical memory");
    EXPECT_EQ(limits[0].bytes, static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * kOsPageBytes);
}

TEST(MemoryLimits, RealCgroupLimitsItsProcess) {
    auto cgroup = MemoryCgroup::create("hanare-test-limits", 64 * kMiB);
    if (!cgroup) GTEST_SKIP() << "no memory cgroup can be created here: " << cgroup.error().text;
    const std::string directory = cgroup->directory();
    const std::string problem = testing::run_in_child([&directory]() -> std::string {
        if (const auto entered = enter_cgroup(directory); !entered) return entered.error().text;
        const auto limit = effective_memory_limit();
        if (!limit) return limit.error().text;
        if (limit->bytes != 64 * kMiB) return "limit is " + std::to_string(limit->bytes);
        return limit->origin.find(directory) == std::string::npos ? limit->origin : "";
    });
    EXPECT_EQ(problem, "");
    EXPECT_TRUE(cgroup->remove().has_value());
}

}  // namespace
}  // namespace hanare::sys
