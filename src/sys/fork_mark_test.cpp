// SPDX-License-Identifier: Apache-2.0
#include "sys/fork_mark.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace hanare::sys {
namespace {

int status_of_child(const ForkMark& mark) {
    const pid_t child = fork();
    if (child == 0) _exit(mark.is_child() ? 7 : 8);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ForkMark, ShowsInChildrenOnly) {
    const ForkMark mark = ForkMark::make().value();
    EXPECT_FALSE(mark.is_child());
    EXPECT_EQ(status_of_child(mark), 7);
    EXPECT_FALSE(mark.is_child());
}

TEST(ForkMark, MadeInAChildIsThatChilds) {
    const pid_t child = fork();
    if (child == 0) _exit(ForkMark::make().value().is_child() ? 8 : 7);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 7);
}

}  // namespace
}  // namespace hanare::sys
