// SPDX-License-Identifier: Apache-2.0
#include "sys/cgroup.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "base/units.hpp"
#include "sys/text_file.hpp"

namespace hanare::sys {
namespace {

constexpr const char* kMountinfoV1 =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:5 - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
constexpr const char* kMountinfoV2 =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(CgroupPlaces, VersionOneIsBelowOurOwn) {
    const auto places =
        memory_cgroup_places(kMountinfoV1, "9:name=systemd:/\n4:memory:/jobs/7\n1:cpu:/\n0::/\n");
    ASSERT_EQ(places.size(), 1u);
    EXPECT_EQ(places[0].version, 1);
    EXPECT_EQ(places[0].directory, "/sys/fs/cgroup/memory/jobs/7");
}

TEST(CgroupPlaces, RootCgroupAddsNothing) {
    const auto places = memory_cgroup_places(kMountinfoV1, "4:memory:/\n0::/\n");
    ASSERT_EQ(places.size(), 1u);
    EXPECT_EQ(places[0].directory, "/sys/fs/cgroup/memory");
}

TEST(CgroupPlaces, MountOfASubtreeHidesItsPrefix) {
    const auto places = memory_cgroup_places(
        "35 31 0:32 /docker/ab /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
        "4:memory:/docker/ab/x\n");
    ASSERT_EQ(places.size(), 1u);
    EXPECT_EQ(places[0].directory, "/sys/fs/cgroup/memory/x");
}

TEST(CgroupPlaces, VersionTwoClimbsToTheMount) {
    const auto places = memory_cgroup_places(kMountinfoV2, "0::/user.slice/session-1.scope\n");
    ASSERT_EQ(places.size(), 3u);
    EXPECT_EQ(places[0].version, 2);
    EXPECT_EQ(places[0].directory, "/sys/fs/cgroup/user.slice/session-1.scope");
    EXPECT_EQ(places[1].directory, "/sys/fs/cgroup/user.slice");
    EXPECT_EQ(places[2].directory, "/sys/fs/cgroup");
}

TEST(CgroupPlaces, NoneWithoutAHierarchy) {
    EXPECT_TRUE(memory_cgroup_places("", "").empty());
    EXPECT_TRUE(memory_cgroup_places("nonsense\n - \n", "x\n::\n").empty());
}

// Ordinary directories with the files of a version-2 hierarchy: what is created and written there
// can be checked on machines whose kernel runs version 1.
class TreeV2 : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = "/tmp/hanare-cgroup-" + std::to_string(getpid()) + "-XXXXXX";
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        root_ = pattern;
    }
    void TearDown() override {
        for (const char* file : {"/cgroup.controllers", "/cgroup.subtree_control"}) {
            unlink((root_ + file).c_str());
        }
        EXPECT_EQ(rmdir(root_.c_str()), 0) << "something was left behind";
    }
    void put(const std::string& file, const std::string& text) {
        const int fd = open((root_ + file).c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
        ASSERT_GE(fd, 0);
        ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
        close(fd);
    }
    std::string root_;
};

TEST_F(TreeV2, RefusesWithoutTheMemoryController) {
    put("/cgroup.controllers", "cpu io\n");
    put("/cgroup.subtree_control", "cpu\n");
    const auto group = MemoryCgroup::create_in({2, root_}, "hanare-test", kGiB);
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().status, HANARE_STATUS_NOT_SUPPORTED);
}

TEST_F(TreeV2, EnablesTheControllerAndUndoesItOnFailure) {
    put("/cgroup.controllers", "cpu memory\n");
    put("/cgroup.subtree_control", "cpu\n");
    // The new directory has no memory.max here, so creation fails after enabling.
    EXPECT_FALSE(MemoryCgroup::create_in({2, root_}, "hanare-test", kGiB));
    const auto control = read_text_file(root_ + "/cgroup.subtree_control");
    ASSERT_TRUE(control);
    EXPECT_EQ(control->substr(0, 7), "-memory");
}

class RealCgroup : public testing::Test {
protected:
    void SetUp() override {
        auto created = MemoryCgroup::create("hanare-test", kLimit);
        if (!created) GTEST_SKIP() << created.error().text;
        group_.emplace(std::move(*created));
    }
    static constexpr uint64_t kLimit = 32 * kMiB;
    std::optional<MemoryCgroup> group_;
};

// Touches memory inside the cgroup; the wait status.
int touch_inside(const std::string& directory, size_t bytes) {
    const pid_t child = fork();
    if (child == 0) {
        if (!enter_cgroup(directory)) _exit(9);
        void* memory =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) _exit(8);
        for (size_t at = 0; at < bytes; at += kOsPageBytes)
            static_cast<volatile char*>(memory)[at] = 1;
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

TEST_F(RealCgroup, LimitsWhoEntersAndNobodyElse) {
    EXPECT_EQ(touch_inside(group_->directory(), 8 * kMiB), 0);
    const auto peak = group_->peak_bytes();
    ASSERT_TRUE(peak) << peak.error().text;
    EXPECT_GE(*peak, 8 * kMiB);
    EXPECT_LE(*peak, kLimit);
    const auto swaps = read_text_file("/proc/swaps");
    if (swaps && swaps->find('/') == std::string::npos) {
        EXPECT_EQ(group_->oom_kills().value_or(0), 0u);
        const int status = touch_inside(group_->directory(), 4 * kLimit);
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
        EXPECT_EQ(group_->oom_kills().value_or(1), 1u);
    }
}

TEST_F(RealCgroup, ReclaimsAndKeepsOutOfSwap) {
    const auto kept = group_->keep_out_of_swap();
    if (!kept && group_->version() == 2) GTEST_SKIP() << kept.error().text;  // no swap controller
    ASSERT_TRUE(kept) << kept.error().text;
    const char* file = group_->version() == 1 ? "/memory.swappiness" : "/memory.swap.max";
    EXPECT_EQ(read_text_file(group_->directory() + file).value_or(""), "0\n");
    group_->reclaim();
    EXPECT_EQ(touch_inside(group_->directory(), 8 * kMiB), 0);
}

TEST_F(RealCgroup, RemovesItself) {
    const std::string directory = group_->directory();
    ASSERT_TRUE(group_->remove());
    EXPECT_NE(access(directory.c_str(), F_OK), 0);
    EXPECT_TRUE(group_->remove());  // nothing left to do
}

TEST_F(RealCgroup, RemovesLeftoversButNotWhatIsInUse) {
    const std::string used = group_->directory();
    const std::string parent = used.substr(0, used.rfind('/'));
    const std::string left = parent + "/hanare-test-0";
    ASSERT_EQ(mkdir(left.c_str(), 0755), 0);
    const pid_t child = fork();  // has another PID, hence another name
    if (child == 0) {
        const auto second =
            MemoryCgroup::create_in({group_->version(), parent}, "hanare-test", kLimit);
        _exit(second ? 0 : 1);  // keeps its cgroup, as a killed process does
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_NE(access(left.c_str(), F_OK), 0) << "the leftover is still there";
    EXPECT_EQ(access(used.c_str(), F_OK), 0) << "a cgroup in use was removed";
    const std::string killed = parent + "/hanare-test-" + std::to_string(child);
    EXPECT_EQ(access(killed.c_str(), F_OK), 0);
    rmdir(killed.c_str());
}

}  // namespace
}  // namespace hanare::sys
