// SPDX-License-Identifier: Apache-2.0
#include "sys/become_program.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace hanare::sys {
namespace {

TEST(BecomeProgram, IsTheOtherProgram) {
    const pid_t child = fork();
    if (child == 0) {
        (void)become_program({"/bin/sh", "-c", "exit 23"}, 0);
        _exit(1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 23);
}

TEST(BecomeProgram, SaysWhatIsNotThere) {
    const Error error = become_program({"/nowhere/at-all"}, 0);
    EXPECT_EQ(error.status, HANARE_STATUS_NOT_FOUND);
    EXPECT_NE(std::string(error.text).find("/nowhere/at-all"), std::string::npos);
}

// The shell writes its end when the signal comes, and its pipe closes at the latest then.
TEST(BecomeProgram, HearsOfItsParentsEnd) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t parent = fork();
    if (parent == 0) {
        if (fork() == 0) {
            dup2(ends[1], STDOUT_FILENO);
            (void)become_program({"/bin/sh", "-c",
                                  "trap 'echo end; exit' TERM; echo ready; "
                                  "while :; do sleep 0.05; done"},
                                 SIGTERM);
            _exit(1);
        }
        for (;;) pause();
    }
    close(ends[1]);
    std::string text;
    char buffer[100];
    while (text.find("ready") == std::string::npos) {
        const ssize_t bytes = read(ends[0], buffer, sizeof buffer);
        ASSERT_GT(bytes, 0);
        text.append(buffer, static_cast<size_t>(bytes));
    }
    kill(parent, SIGKILL);
    waitpid(parent, nullptr, 0);
    for (ssize_t bytes; (bytes = read(ends[0], buffer, sizeof buffer)) > 0;) {
        text.append(buffer, static_cast<size_t>(bytes));
    }
    close(ends[0]);
    EXPECT_EQ(text, "ready\nend\n");
}

}  // namespace
}  // namespace hanare::sys
