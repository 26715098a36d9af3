// SPDX-License-Identifier: Apache-2.0
#include "sys/process_search.hpp"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "sys/process_namespace.hpp"
#include "sys/test_support.hpp"

namespace hanare::sys {
namespace {

TEST(ProcessSearch, FindsWhoIsInTheSame) {
    EXPECT_EQ(find_process(process_namespace(), getpid()), getpid());
    EXPECT_EQ(find_process(process_namespace(), 1 << 30), 0);
}

TEST(ProcessSearch, FindsWhoIsInAnotherUntilItIsReaped) {
    const std::string said = testing::run_in_child([] {
        if (unshare(CLONE_NEWPID) != 0) return std::string("refused");
        int told[2];
        if (pipe(told) != 0) return std::string("no pipe");
        const pid_t child = fork();
        if (child == 0) {
            const uint64_t own = process_namespace();
            if (write(told[1], &own, sizeof own) != sizeof own) _exit(1);
            for (;;) pause();
        }
        uint64_t name_space = 0;
        if (read(told[0], &name_space, sizeof name_space) != sizeof name_space) {
            return std::string("not told");
        }
        if (find_process(name_space, 1) != child) return std::string("not found");
        if (find_process(name_space, 2) != 0) return std::string("found what is not there");
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        return std::string(find_process(name_space, 1) == 0 ? "" : "found after its end");
    });
    if (said == "refused") GTEST_SKIP() << "new namespaces of processes are not allowed here";
    EXPECT_EQ(said, "");
}

}  // namespace
}  // namespace hanare::sys
