// SPDX-License-Identifier: Apache-2.0
#include "sys/child.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

namespace hanare::sys {
namespace {

// The child is this test program.
constexpr const char* kList = "--gtest_list_tests";

std::string output_of(const Child& child) {
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = read(child.output_fd(), buffer, sizeof buffer)) > 0;) {
        text.append(buffer, static_cast<size_t>(got));
    }
    return text;
}

TEST(Child, TellsUsAndEnds) {
    auto child = Child::start({"child", kList});
    ASSERT_TRUE(child) << child.error().text;
    EXPECT_NE(output_of(*child).find("TellsUsAndEnds"), std::string::npos);
    const auto status = child->wait();
    ASSERT_TRUE(status);
    EXPECT_EQ(*status, 0);
}

TEST(Child, HearsWhatIsSent) {
    auto child = Child::start({"child", "--gtest_filter=ChildAtWork.*"}, Child::Input::kFromUs);
    ASSERT_TRUE(child) << child.error().text;
    EXPECT_TRUE(child->send("said "));
    EXPECT_TRUE(child->send("in parts"));
    child->end_input();
    EXPECT_NE(output_of(*child).find("heard: said in parts"), std::string::npos);
}

// Run by the test above, as the child.
TEST(ChildAtWork, RepeatsItsInput) {
    struct stat input = {};
    if (fstat(STDIN_FILENO, &input) != 0 || !S_ISSOCK(input.st_mode)) {
        GTEST_SKIP() << "is for the child of another test";
    }
    std::string text;
    char buffer[64];
    for (ssize_t got; (got = read(STDIN_FILENO, buffer, sizeof buffer)) > 0;) {
        text.append(buffer, static_cast<size_t>(got));
    }
    std::printf("heard: %s\n", text.c_str());
    std::fprintf(stderr, "heard something\n");
}

TEST(Child, ErrorsComeToo) {
    auto child = Child::start({"child", "--gtest_filter=ChildAtWork.*"}, Child::Input::kFromUs,
                              Child::Output::kWithErrors);
    ASSERT_TRUE(child) << child.error().text;
    child->end_input();
    EXPECT_NE(output_of(*child).find("heard something\n"), std::string::npos);
}

TEST(Child, SendingToOneThatHasEndedIsAnError) {
    auto child = Child::start({"child", kList}, Child::Input::kFromUs);
    ASSERT_TRUE(child) << child.error().text;
    (void)output_of(*child);
    ASSERT_TRUE(child->wait());
    const auto sent = child->send("anybody there?");  // and no SIGPIPE
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().os_errno, EPIPE);
}

}  // namespace
}  // namespace hanare::sys
