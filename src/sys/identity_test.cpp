// SPDX-License-Identifier: Apache-2.0
#include "sys/identity.hpp"

#include <array>
#include <fstream>
#include <grp.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace hanare::sys {
namespace {

// What the kernel says of the calling thread.
std::vector<std::string> lines_of_identity() {
    std::ifstream status("/proc/thread-self/status");
    std::vector<std::string> found;
    for (std::string line; std::getline(status, line);) {
        for (const char* name : {"Uid:", "Gid:", "Groups:", "CapInh:", "CapPrm:", "CapEff:"}) {
            if (line.starts_with(name)) found.push_back(line);
        }
    }
    return found;
}

// In a thread of its own, which alone changes: libc's functions would change all.
template <typename Function>
void in_thread(Function function) {
    std::thread(function).join();
}

TEST(IdentityTest, IsOfOneThread) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
    const auto identity = std::make_unique<Identity>();
    const std::vector<std::string> roots = lines_of_identity();
    std::vector<std::string> wanted;
    in_thread([&] {
        const std::array<gid_t, 2> groups = {7, 9};
        ASSERT_EQ(syscall(SYS_setgroups, groups.size(), groups.data()), 0);
        ASSERT_EQ(syscall(SYS_setresgid, 11, 12, 13), 0);
        ASSERT_EQ(syscall(SYS_setresuid, 21, 22, 23), 0);
        identity->take_from_caller();
        wanted = lines_of_identity();
    });
    in_thread([&] {
        identity->give_to_caller();
        EXPECT_EQ(lines_of_identity(), wanted);
    });
    EXPECT_EQ(wanted.size(), 6U);
    EXPECT_NE(wanted, roots);
    EXPECT_EQ(lines_of_identity(), roots);
}

TEST(IdentityTest, ComesBackAsFarAsItMay) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
    const auto before = std::make_unique<Identity>();
    const auto after = std::make_unique<Identity>();
    before->take_from_caller();
    const std::vector<std::string> roots = lines_of_identity();
    in_thread([&] {
        ASSERT_EQ(syscall(SYS_setresuid, -1, 21, 0), 0);
        after->take_from_caller();
        const std::vector<std::string> wanted = lines_of_identity();
        before->give_to_caller();
        EXPECT_EQ(lines_of_identity(), roots);
        after->give_to_caller();
        EXPECT_EQ(lines_of_identity(), wanted);
    });
}

TEST(IdentityTest, OfAnOrdinaryUserIsKept) {
    const auto identity = std::make_unique<Identity>();
    in_thread([&] {
        if (geteuid() == 0) {
            ASSERT_EQ(syscall(SYS_setresuid, 21, 21, 21), 0);
        }
        identity->take_from_caller();
        const std::vector<std::string> wanted = lines_of_identity();
        identity->give_to_caller();
        EXPECT_EQ(lines_of_identity(), wanted);
    });
}

}  // namespace
}  // namespace hanare::sys
