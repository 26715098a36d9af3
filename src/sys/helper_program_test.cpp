// SPDX-License-Identifier: Apache-2.0
#include "sys/helper_program.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

#include <gtest/gtest.h>

#include "sys/clock.hpp"
#include "sys/event.hpp"
#include "sys/pipe.hpp"

namespace hanare::sys {
namespace {

constexpr int kPatience_ms = 20'000;

HelperProgram::Launch shell(const std::string& script) {
    return {.path = "/bin/sh",
            .arguments = {"sh", "-c", script},
            .environment = {"PATH=/usr/bin:/bin"}};
}

TEST(HelperProgram, TalksInLines) {
    HelperProgram::Launch launch = shell("read a; read b; echo $a; echo two $b; cat; echo end");
    constexpr std::string_view kInput = "one\n2\n";
    launch.input = std::as_bytes(std::span(kInput));
    HelperProgram program = HelperProgram::start(launch).value();
    EXPECT_EQ(program.read_line(kPatience_ms).value(), "one");
    EXPECT_EQ(program.read_line(kPatience_ms).value(), "two 2");
    EXPECT_EQ(program.read_line(10).error().status, HANARE_STATUS_TIMEOUT);
    program.dismiss();
    EXPECT_EQ(program.read_line(kPatience_ms).value(), "end");
    EXPECT_EQ(program.read_line(kPatience_ms).error().status, HANARE_STATUS_NOT_FOUND);
    EXPECT_EQ(program.end(kPatience_ms), 0);
}

TEST(HelperProgram, EndsWhenItIsDismissed) {
    HelperProgram program = HelperProgram::start(shell("cat >/dev/null; exit 3")).value();
    const int status = program.end(kPatience_ms);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << status;
}

TEST(HelperProgram, IsKilledWhenItDoesNot) {
    HelperProgram program = HelperProgram::start(shell("echo up; exec sleep 1000")).value();
    ASSERT_TRUE(program.read_line(kPatience_ms));
    const int status = program.end(50);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST(HelperProgram, HearsNothingFromTheTerminal) {
    HelperProgram program =
        HelperProgram::start(shell("kill -INT $$; kill -HUP $$; echo deaf")).value();
    EXPECT_EQ(program.read_line(kPatience_ms).value(), "deaf");
    EXPECT_EQ(program.end(kPatience_ms), 0);
}

TEST(HelperProgram, LeavesSignalsAsTheyWere) {
    struct sigaction before = {};
    struct sigaction after = {};
    sigset_t mask_before;
    sigset_t mask_after;
    ASSERT_EQ(sigaction(SIGPIPE, nullptr, &before), 0);
    ASSERT_EQ(sigprocmask(SIG_SETMASK, nullptr, &mask_before), 0);
    HelperProgram program = HelperProgram::start(shell("exit 0")).value();
    ASSERT_EQ(sigaction(SIGPIPE, nullptr, &after), 0);
    ASSERT_EQ(sigprocmask(SIG_SETMASK, nullptr, &mask_after), 0);
    EXPECT_EQ(before.sa_handler, after.sa_handler);
    for (int number = 1; number < SIGRTMAX; ++number) {
        EXPECT_EQ(sigismember(&mask_before, number), sigismember(&mask_after, number)) << number;
    }
}

TEST(HelperProgram, ThatIsNone) {
    const auto program =
        HelperProgram::start({.path = "/nonexistent", .arguments = {"x"}, .environment = {}});
    ASSERT_FALSE(program);
    EXPECT_EQ(program.error().os_errno, ENOENT);
}

// Neither it nor what it has started outlives the process that wanted it.
TEST(HelperProgram, EndsWithUs) {
    Pipe alive = make_pipe().value();
    const pid_t parent = fork();
    if (parent == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int held = dup(alive.to.number());  // not closed on exec
        (void)held;
        auto program = HelperProgram::start(shell("exec 3<&0; cat <&3 & echo up; exec sleep 1000"));
        if (!program || !program->read_line(kPatience_ms)) _exit(1);
        raise(SIGKILL);
    }
    alive.to.close();
    int status = 0;
    ASSERT_EQ(waitpid(parent, &status, 0), parent);
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
    // Ends when the last one has closed the other side.
    ASSERT_TRUE(wait_until_readable(alive.from.number(), -1, kPatience_ms).first);
    char byte;
    EXPECT_EQ(read(alive.from.number(), &byte, 1), 0);
}

}  // namespace
}  // namespace hanare::sys
