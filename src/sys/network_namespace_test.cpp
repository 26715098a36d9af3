// SPDX-License-Identifier: Apache-2.0
#include "sys/network_namespace.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <functional>
#include <string>

#include "sys/test_support.hpp"
#include "sys/text_file.hpp"

namespace hanare::sys {
namespace {

constexpr int kNotAllowed = 77;

std::string own_network() {
    char name[PATH_MAX] = {};
    (void)!readlink("/proc/self/ns/net", name, sizeof name - 1);
    return name;
}

int look_from_inside(const std::string& outside) {
    if (const auto entered = enter_own_network(); !entered) {
        std::fprintf(stderr, "%s\n", entered.error().text);
        return entered.error().status == HANARE_STATUS_PERMISSION ? kNotAllowed : 1;
    }
    if (own_network() == outside) return 2;
    // Two lines of headings and one interface.
    const auto interfaces = read_text_file("/proc/self/net/dev");
    if (!interfaces || interfaces->find(" lo:") == std::string::npos) return 3;
    if (std::count(interfaces->begin(), interfaces->end(), '\n') != 3) return 4;
    return geteuid() == 0 ? 0 : 5;
}

int in_child(const std::function<int()>& act) {
    const pid_t child = fork();
    if (child == 0) _exit(act());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(NetworkNamespace, HasLoopbackOnly) {
    const std::string outside = own_network();
    const int result = in_child([&] { return look_from_inside(outside); });
    if (result == kNotAllowed) GTEST_SKIP() << "no network of its own is allowed here";
    EXPECT_EQ(result, 0);
    EXPECT_EQ(own_network(), outside);
}

TEST(NetworkNamespace, AlsoForOrdinaryUsers) {
    if (geteuid() != 0) GTEST_SKIP() << "the other test is about ordinary users already";
    const std::string outside = own_network();
    const int result = in_child([&] {
        if (setgid(testing::kNobody) != 0 || setuid(testing::kNobody) != 0) return 6;
        prctl(PR_SET_DUMPABLE, 1);  // as who has been this user from the beginning
        return look_from_inside(outside);
    });
    if (result == kNotAllowed) GTEST_SKIP() << "user namespaces are not allowed here";
    EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace hanare::sys
