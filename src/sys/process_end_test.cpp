// SPDX-License-Identifier: Apache-2.0
#include "sys/process_end.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace hanare::sys {
namespace {

TEST(ProcessEnd, IsSeenBeforeTheParentKnows) {
    const pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    FileDescriptor process;
    ASSERT_EQ(open_process(child, process), 0);
    EXPECT_FALSE(has_ended(process));
    EXPECT_TRUE(exists(child));
    kill(child, SIGKILL);
    pollfd state = {.fd = process.number(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&state, 1, 10'000), 1);
    EXPECT_TRUE(has_ended(process));
    EXPECT_TRUE(exists(child));
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(has_ended(process));
    EXPECT_FALSE(exists(child));
    FileDescriptor none;
    EXPECT_EQ(open_process(child, none), ESRCH);
    EXPECT_FALSE(none.is_open());
}

}  // namespace
}  // namespace hanare::sys
