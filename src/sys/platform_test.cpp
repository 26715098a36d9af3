// SPDX-License-Identifier: Apache-2.0
//
// The probe is compared with independent looks at the same machine, and run under restrictions.
#include "sys/platform.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <string>

#include "base/units.hpp"
#include "sys/inject.hpp"
#include "sys/test_support.hpp"

namespace hanare::sys {
namespace {

// Refuses two system calls with EPERM, as container runtimes do.
bool refuse_userfaultfd_and_io_uring() {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter = {std::size(program), program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(Platform, AgreesWithOtherLooksAtThisMachine) {
    const Platform platform = probe_platform();
    EXPECT_GE(platform.kernel_major, 4);
    EXPECT_TRUE(platform.kernel_release.starts_with(std::to_string(platform.kernel_major) + "."));
    EXPECT_EQ(platform.user_id, geteuid());
    rlimit files = {};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
    EXPECT_EQ(platform.open_files.soft, files.rlim_cur);
    EXPECT_GT(platform.max_map_count.value_or(0), 0u);
    EXPECT_LE(platform.overcommit_memory.value_or(99), 2u);
    EXPECT_LE(platform.swap_free_bytes, platform.swap_bytes);
    EXPECT_FALSE(platform.sigbus_blocked);
    const long descriptor = syscall(SYS_userfaultfd, O_CLOEXEC | 1);
    EXPECT_EQ(platform.userfault.available, descriptor >= 0);
    if (descriptor >= 0) close(static_cast<int>(descriptor));
}

// Kernels that do not know UFFD_USER_MODE_ONLY refuse it so.
TEST(Platform, UserfaultfdIsTriedWithoutTheNewFlag) {
    const Userfault::Support support = Userfault::probe();
    inject::arm(inject::Call::kUserfaultfd, EINVAL, 0, 1);
    const Userfault::Support older = Userfault::probe();
    inject::arm(inject::Call::kUserfaultfd, EINVAL);
    EXPECT_EQ(Userfault::probe().os_errno, EINVAL);
    inject::disarm_all();
    if (geteuid() != 0) GTEST_SKIP() << "without the flag it needs root here";
    EXPECT_EQ(older.available, support.available) << older.os_errno;
}

TEST(Platform, MaySwaponWhoeverMayDoSo) {
    if (!probe_platform().may_swapon) GTEST_SKIP() << "not allowed here";
    EXPECT_EQ(testing::run_in_child([]() -> std::string {
                  // Privileges in a user namespace of one's own are none for this.
                  if (unshare(CLONE_NEWUSER) != 0) return "";
                  return probe_platform().may_swapon ? "allowed in a user namespace" : "";
              }),
              "");
}

TEST(Platform, SeesASeccompFilter) {
    EXPECT_EQ(testing::run_in_child([]() -> std::string {
                  if (!refuse_userfaultfd_and_io_uring()) return "no filter could be set";
                  const Platform platform = probe_platform();
                  if (!platform.is_filtered) return "the filter was not seen";
                  if (platform.userfault.available) return "userfaultfd was not refused";
                  if (platform.userfault.os_errno != EPERM) return "not EPERM";
                  return platform.uring_errno == EPERM ? "" : "io_uring was not refused";
              }),
              "");
}

TEST(Platform, OrdinaryUserMayNotSwapon) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    EXPECT_EQ(testing::run_in_child([]() -> std::string {
                  if (!testing::become_nobody()) return "still root";
                  const Platform platform = probe_platform();
                  if (platform.user_id != testing::kNobody) return "wrong user";
                  if (platform.may_swapon) return "may swapon";
                  return platform.cgroup_refusal.empty() ? "may create cgroups" : "";
              }),
              "");
}

TEST(Platform, SeesAnInheritedSigbusMask) {
    EXPECT_EQ(testing::run_in_child([]() -> std::string {
                  sigset_t set;
                  sigemptyset(&set);
                  sigaddset(&set, SIGBUS);
                  sigprocmask(SIG_BLOCK, &set, nullptr);
                  std::signal(SIGBUS, SIG_IGN);
                  const Platform platform = probe_platform();
                  if (!platform.sigbus_blocked) return "the mask was not seen";
                  return platform.sigbus_ignored ? "" : "the disposition was not seen";
              }),
              "");
}

TEST(ProbeDirectory, ReportsAndLeavesNothing) {
    const testing::TemporaryDirectory directory;
    const auto report = probe_directory(directory.path());
    ASSERT_TRUE(report.has_value()) << report.error().text;
    EXPECT_FALSE(report->file_system.empty());
    EXPECT_EQ(directory.entry_count(), 0u);
}

TEST(ProbeDirectory, ExaminesWithoutWriting) {
    const testing::TemporaryDirectory directory;
    const auto report = examine_directory(directory.path());
    const auto probed = probe_directory(directory.path());
    ASSERT_TRUE(report && probed);
    EXPECT_EQ(report->file_system, probed->file_system);
    EXPECT_EQ(report->in_memory, probed->in_memory);
    EXPECT_EQ(directory.entry_count(), 0u);
}

TEST(ProbeDirectory, KnowsTmpfs) {
    const auto report = probe_directory("/dev/shm");
    if (!report) GTEST_SKIP() << report.error().text;
    EXPECT_EQ(report->file_system, "tmpfs");
    EXPECT_TRUE(report->in_memory);
}

TEST(ProbeDirectory, SaysWhyNot) {
    for (const char* directory : {"/nonexistent/x", "/proc", "/etc/passwd", ""}) {
        const auto report = probe_directory(directory);
        ASSERT_FALSE(report.has_value()) << directory;
        EXPECT_EQ(report.error().status, HANARE_STATUS_STORE_UNAVAILABLE);
        EXPECT_NE(report.error().os_errno, 0);
    }
}

}  // namespace
}  // namespace hanare::sys
