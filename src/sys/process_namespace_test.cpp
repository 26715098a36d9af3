// SPDX-License-Identifier: Apache-2.0
#include "sys/process_namespace.hpp"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "sys/test_support.hpp"

namespace hanare::sys {
namespace {

TEST(ProcessNamespace, IsThatOfChildren) {
    const uint64_t own = process_namespace();
    EXPECT_NE(own, 0u);
    EXPECT_EQ(testing::run_in_child([own] {
                  return process_namespace() == own ? std::string() : std::string("another");
              }),
              "");
}

TEST(ProcessNamespace, NewOnesAreOthers) {
    const uint64_t own = process_namespace();
    const std::string said = testing::run_in_child([own] {
        if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
            return std::string("refused");
        }
        // What it starts from now on is in it, itself it is not.
        if (process_namespace() != own) return std::string("moved");
        const pid_t child = fork();
        if (child == 0) _exit(getpid() == 1 && process_namespace() != own ? 0 : 1);
        int status = -1;
        waitpid(child, &status, 0);
        return status == 0 ? std::string() : std::string("the same");
    });
    if (said == "refused") GTEST_SKIP() << "new namespaces of processes are not allowed here";
    EXPECT_EQ(said, "");
}

}  // namespace
}  // namespace hanare::sys
